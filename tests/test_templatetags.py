"""`{% view_count %}` and `{% unread_dot %}` in templates."""

import re
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template import Context, Engine, Template, TemplateSyntaxError
from django.test import AsyncClient, Client
from django.urls import path
from django.utils.translation import override
from pytest_django import DjangoAssertNumQueries, Settings

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.page import placeholders
from readtrack.page.rendering import in_words, new_items
from readtrack.request import Recorder
from readtrack.sql import raising
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_of
from tests.site.models import Category, Manual, Post, Publication
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


def render(source: str, **context: Any) -> str:
    """Renders without a request, as for a mail."""
    return Template("{% load readtrack %}" + source).render(Context(context))


def page(source: str, request: Any, **context: Any) -> str:
    """Renders with a request that the middleware does not see."""
    return render(source, request=request, **context)


def test_without_a_request_the_value_is_there_at_once() -> None:
    post = factories.post(view_count=1234)
    assert (
        render("{% view_count post %}", post=post)
        == '<span class="readtrack-count" title="1,234">1.2k</span>'
    )
    assert render("{% view_count post exact %}", post=post) == "1,234"


def test_a_count_under_a_name_is_a_number() -> None:
    post = factories.post(view_count=1234)
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    assert (
        render("{% view_count post as n %}{% if n > 1234 %}{{ n }}{% endif %}", post=post) == "1235"
    )


def test_a_count_in_words_or_figures_is_such_under_a_name_too() -> None:
    post = factories.post(view_count=1234)
    assert render("{% view_count post exact as n %}<title>{{ n }}", post=post) == "<title>1,234"
    assert (
        render("{% view_count post words as n %}<title>{{ n }}", post=post) == "<title>1.2k views"
    )


@pytest.mark.parametrize(
    "source",
    [
        "{% view_count c %}",
        "{% view_count c as x %}{{ x }}",
        "{% view_count c exact as x %}{{ x }}",
        "{% unread_dot p %}",
        "{% unread_dot p as x %}{{ x }}",
        "{% unread_count p as x %}{{ x }}",
        "{% view_count missing as x %}{{ x }}",
        "{% for o in objs %}{% view_count o as x %}{% if not forloop.first %}{{ x }}{% endif %}{% endfor %}",
    ],
)
def test_an_object_without_a_count_or_a_dot_is_empty_under_a_name_too(source: str) -> None:
    post, category = factories.post(view_count=5), factories.category()
    assert render(source, c=category, p=post, objs=[post, category], user=factories.user()) == ""


def test_a_dot_under_a_name_is_a_condition(rf: Any) -> None:
    category, user, request = factories.category(), factories.user(), rf.get("/")
    source = "{% unread_dot c as is_new %}{{ is_new|yesno }}"
    request.user = user
    assert page(source, request, c=category) == "yes"
    tracker.mark_read(user, [category])
    assert page(source, request, c=category) == "no"
    request.user = AnonymousUser()
    assert page(source, request, c=category) == "no"


def test_a_mail_may_have_dots_for_the_user_of_its_context() -> None:
    category, user = factories.category(), factories.user()
    assert "readtrack-dot" in render("{% unread_dot c %}", c=category, user=user)
    assert render("{% unread_dot c %}", c=category, user=AnonymousUser()) == ""
    assert render("{% unread_dot c %}", c=category) == ""


@pytest.mark.parametrize(
    "source",
    [
        "{% view_count missing %}",
        "{% unread_dot missing %}",
        "{% view_count text %}",
        "{% view_count unsaved %}",
    ],
)
def test_a_variable_that_is_no_saved_object_shows_nothing(source: str) -> None:
    assert render(source, text="words", unsaved=Post()) == ""


@pytest.mark.parametrize(
    "tag",
    [
        "view_count",
        "view_count post short",
        "view_count post exact exact short",
        "view_count post exact words",
        "view_count post as",
        "view_count as n",
        "unread_dot",
        "unread_dot category exact",
        "unread_dot category as",
    ],
)
def test_a_tag_used_wrongly_says_how_it_is_used(tag: str) -> None:
    with pytest.raises(TemplateSyntaxError, match=rf"Usage: {{% {tag.split()[0]} object"):
        render(f"{{% {tag} %}}")


def test_an_object_can_come_through_filters_and_lookups() -> None:
    category = factories.category()
    posts = [factories.post(category=category, view_count=9)]
    assert (
        render("{% view_count posts|first exact %}{% view_count posts.0 exact %}", posts=posts)
        == "99"
    )


def test_a_count_loads_no_deferred_column(
    wire: Wire, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    factories.post(view_count=5)
    post = Post.objects.only("pk").get()
    request = type("Request", (), {"readtrack": Recorder()})()
    with django_assert_num_queries(0), wire.counted() as trips:
        left = page("{% view_count post %}", request, post=post)
    assert left.startswith(f"!rt!count!site.post:{post.pk}!!")
    assert trips == [0]


def spoken(request: HttpRequest) -> HttpResponse:
    """A page whose counts and dots stand inside and outside of blocks of a language."""
    objects = {"post": Post.objects.get(), "category": Category.objects.get()}
    source = "{% view_count post words %}|{% unread_dot category %}"
    if "override" in request.GET:
        with override(request.GET["override"]):
            return HttpResponse(page(source, request, **objects))
    around = f"{{% language 'de' %}}{source}{{% language 'fr' %}}{source}{{% endlanguage %}}{{% endlanguage %}}"
    text = page("{% load i18n cache %}" + source + around + source, request, **objects)
    if "stream" in request.GET:
        return StreamingHttpResponse(text[at : at + 50] for at in range(0, len(text), 50))  # type: ignore[return-value]
    return HttpResponse(text)


@pytest.fixture
def reader(settings: Settings) -> Client:
    settings.ROOT_URLCONF = "tests.test_templatetags"
    factories.post(view_count=1234)
    factories.category()
    return factories.browser(factories.user())


def languages(text: str) -> list[str]:
    """Returns the languages of the dots in the page, in their order."""
    texts = re.findall('readtrack-dot__text">([^<]+)<', text)
    names = {}
    for language in ("en", "de", "fr"):
        with override(language):
            [name] = re.findall('readtrack-dot__text">([^<]+)<', new_items(0))
            names[name] = language
            names[in_words(1234)] = language
    counts = re.findall('title="[^"]+">([^<]+)<', text)
    assert [names[text] for text in counts] == [names[text] for text in texts]
    return [names[text] for text in texts]


@pytest.mark.parametrize("query", ["", "?stream"])
def test_a_count_and_a_dot_are_in_the_language_of_the_block_around_them(
    reader: Client, query: str
) -> None:
    assert languages(text_of(reader.get(f"/spoken/{query}"))) == ["en", "de", "fr", "en"]
    assert languages(text_of(reader.get(f"/spoken/{query}"))) == ["en", "de", "fr", "en"]


@pytest.mark.parametrize("language", ["de", "pt-br", "en"])
def test_a_count_is_in_the_language_that_a_view_sets(reader: Client, language: str) -> None:
    text = text_of(reader.get("/spoken/", {"override": language}))
    with override(language):
        assert in_words(1234) in text
        assert new_items(0) in text


def test_a_count_is_in_the_language_that_the_reader_asks_for(
    reader: Client, settings: Settings
) -> None:
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware", *settings.MIDDLEWARE]
    for language in ("fr", "de"):
        with override(None):  # the middleware leaves its language behind
            text = text_of(reader.get("/spoken/", headers={"Accept-Language": language}))
        assert languages(text) == [language, "de", "fr", language]


def test_the_placeholders_of_a_fragment_that_all_languages_share_name_none(rf: Any) -> None:
    request = rf.get("/")
    request.readtrack = Recorder()
    request.LANGUAGE_CODE = "de"
    with override("de"):
        assert "@" not in page("{% view_count post %}", request, post=factories.post())
    assert "@en-us!" in page("{% view_count post %}", request, post=factories.post())


def test_a_tag_writes_no_count_and_no_read_state(redis: Any) -> None:
    render(
        "{% view_count post %}{% unread_dot c %}",
        post=factories.post(),
        c=factories.category(),
        user=factories.user(),
    )
    assert redis.keys("*") == ["reads:began"]


def deferred_page(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """A list of rows that do not carry their count, of a Tracked model and of one that
    MODELS counts.
    """
    rows = [*Post.objects.only("title").order_by("pk"), *Manual.objects.order_by("pk")]
    content = render(
        "{% for o in rows %}{% view_count o exact %};{% endfor %}", rows=rows, request=request
    )
    return StreamingHttpResponse([content]) if "stream" in request.GET else HttpResponse(content)


urlpatterns = [
    path("spoken/", spoken),
    path("deferred/", deferred_page),
    path("async/", sync_to_async(deferred_page)),
]


@pytest.fixture
def deferred(settings: Settings) -> list[Any]:
    """Returns rows that SQL stores 10, 11, 12 and 13 views of, the second and fourth in the app's
    own table.
    """
    settings.READTRACK = {"MODELS": {"site.Manual": {"counted": True}}}
    posts = [factories.post(view_count=number) for number in (10, 11)]
    manuals = [Manual.objects.create(title="A") for _ in range(2)]
    raising.write(Manual, {row.pk: RowCounts(12 + number, 0) for number, row in enumerate(manuals)})
    settings.ROOT_URLCONF = "tests.test_templatetags"
    return [*posts, *manuals]


@pytest.mark.parametrize("url", ["/deferred/", "/deferred/?stream", "/async/", "/async/?stream"])
def test_rows_without_their_count_show_what_sql_stores_by_one_query_for_each_table(
    url: str, deferred: list[Any], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(4):
        assert text_of(factories.browser().get(url)) == "10;11;12;13;"
    tracker.record(factories.hit(*map(subject_of, deferred)))
    assert text_of(factories.browser().get(url)) == "11;12;13;14;"
    flush()
    with django_assert_num_queries(4):
        assert text_of(factories.browser().get(url)) == "11;12;13;14;"


@pytest.mark.parametrize("url", ["/deferred/", "/deferred/?stream", "/async/", "/async/?stream"])
@pytest.mark.usefixtures("deferred")
def test_under_asgi_too(url: str) -> None:
    assert text_of(factories.fetch_async(AsyncClient(), url)) == "10;11;12;13;"


def text_of(response: Any) -> str:
    if not response.streaming:
        return str(response.text)
    if not response.is_async:
        return str(response.getvalue().decode())

    async def joined() -> bytes:
        return b"".join([part async for part in response.streaming_content])

    return async_to_sync(joined)().decode()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda: factories.category(),
            "Category has no counts; let it extend readtrack.models.Tracked, or write",
        ),
        (
            lambda: Publication(pk=1),
            "Publication has no counts, only its children have (Journal, Essay); pass the",
        ),
        (
            lambda: {"pk": 1},
            "dict is no model, so it has no counts; pass the object that it wraps.",
        ),
        (lambda: None, "its variable is missing, None or empty."),
        (lambda: "", "its variable is missing, None or empty."),
        (lambda: Post(), "this Post is not saved."),
    ],
    ids=["uncounted", "base of a counted child", "wrapper", "none", "empty", "unsaved"],
)
def test_an_object_without_counts_shows_nothing_and_with_debug_the_log_says_why_once(
    make: Any, reason: str, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    placeholders._explain.cache_clear()
    assert render("{% view_count o %}", o=make()) == ""
    assert caplog.messages == []
    settings.DEBUG = True
    for _ in range(3):
        assert render("{% view_count o %}", o=make()) == ""
    (message,) = caplog.messages
    place = "{% view_count o %} in <unknown source>, line 1,"
    assert message.startswith(f"{place} shows nothing: {reason}")


@pytest.mark.parametrize(
    "tag",
    [
        "{% view_count pots %}",
        "{% view_count post.topc words %}",
        "{% view_count pots as views %}",
        "{% unread_dot post.categry %}",
        "{% if_unread nothing %}",
    ],
)
def test_the_log_names_the_variable_and_the_template_of_a_misspelt_tag(
    tag: str, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    settings.DEBUG = True
    end = "{% endif_unread %}" if "if_unread" in tag else ""
    loader = "django.template.loaders.locmem.Loader"
    source = f"{{% load readtrack %}}\n<p>{tag}{end}</p>"
    engine = Engine(
        loaders=[(loader, {"blog/post.html": source})],
        libraries={"readtrack": "readtrack.templatetags.readtrack"},
    )
    engine.get_template("blog/post.html").render(Context({"post": factories.post()}))
    assert caplog.messages == [
        f"{tag} in blog/post.html, line 2, shows nothing: its variable is missing, None or empty."
    ]


def test_a_dot_of_an_object_that_is_not_saved_is_told_of_in_the_log_with_debug(
    caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    placeholders._explain.cache_clear()
    settings.DEBUG = True
    assert render("{% unread_dot o %}", o=Category()) == ""
    assert caplog.messages == [
        "{% unread_dot o %} in <unknown source>, line 1, shows nothing: this Category is not saved."
    ]


def test_an_object_that_never_has_a_dot_is_told_of_in_the_log_with_debug(
    caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    placeholders._explain.cache_clear()
    settings.DEBUG = True
    empty = factories.category()
    empty.has_news = False  # type: ignore[attr-defined]
    for _ in range(2):
        assert (
            render(
                "{% unread_dot post %}{% unread_dot empty %}", post=factories.post(), empty=empty
            )
            == ""
        )
    (message,) = caplog.messages
    assert message.startswith(
        "{% unread_dot post %} in <unknown source>, line 1, shows nothing:"
        " Post has no read state; write into the settings READTRACK.setdefault('MODELS', {})"
    )
