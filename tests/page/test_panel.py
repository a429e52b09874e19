"""The panel shows an object's numbers to those who may see them, and stays out of every copy that
others may get.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.core.cache import caches
from django.db import connection
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.template import engines
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import path
from django.views.decorators.cache import cache_page
from pytest_django import Settings

from readtrack import reports, tracker
from readtrack.access import numbers_url
from readtrack.flush.run import flush
from readtrack.hits.stages import READS
from readtrack.hits.visitors import Visitor
from readtrack.numbers import panel
from readtrack.numbers import reports as numbers_reports
from readtrack.page.placeholders import PANEL, Placeholder
from readtrack.script.reading import Reading
from readtrack.script.shared import shared_page
from readtrack.subjects import subject_of
from tests.conftest import Start
from tests.site.models import Article, Gadget, Post
from tests.site.urls import urlpatterns
from tests.support import factories, usual
from tests.support.pseudo import unmarked
from tests.support.wire import Wire

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

FOUND = '<section class="readtrack-panel"'
MODELS: dict[str, Any] = {"article": Article, "gadget": Gadget, "post": Post}


def html(request: Any, **context: Any) -> str:
    source = "{% load readtrack %}<p>{% readtrack_panel post %}{% view_count post exact %}</p>"
    context = context or {"post": MODELS[request.GET.get("model", "article")].objects.get()}
    return str(engines["django"].from_string(source).render(context, request))


def plain(request: Any) -> HttpResponse:
    return HttpResponse(html(request))


def viewed(request: Any) -> HttpResponse:
    request.readtrack.view(Post.objects.get())
    return HttpResponse(html(request, post=Post.objects.get()))


async def asynchronous(request: Any) -> HttpResponse:
    return HttpResponse(await sync_to_async(html)(request))


def jinja(request: Any) -> HttpResponse:
    source = engines["jinja2"].from_string("{{ readtrack_panel(post) }}")
    return HttpResponse(source.render({"post": Article.objects.get()}, request))


def twice(request: Any) -> HttpResponse:
    return HttpResponse(html(request) * 2)


def text(request: Any) -> HttpResponse:
    return HttpResponse(html(request), content_type="text/plain")


def json(request: Any) -> JsonResponse:
    return JsonResponse({"html": html(request)})


def stream(request: Any) -> StreamingHttpResponse:
    def parts() -> Iterator[str]:
        yield html(request)

    return StreamingHttpResponse(parts())


def comment(request: Any) -> HttpResponse:
    return HttpResponse(request.GET["text"])


def part(request: Any) -> HttpResponse:
    source = '{% load readtrack cache %}{% cache 600 part using="pages" %}{% readtrack_panel post %}{% endcache %}'
    context = {"post": Article.objects.get()}
    return HttpResponse(engines["django"].from_string(source).render(context, request))


def category(request: Any) -> HttpResponse:
    return HttpResponse(html(request, post=factories.category()))


cached = cache_page(600, cache="pages")(plain)
shared = shared_page(plain)
cached_shared = cache_page(600, cache="pages")(shared_page(plain))

urlpatterns = [
    *urlpatterns,
    path("plain/", plain),
    path("viewed/", viewed),
    path("asynchronous/", asynchronous),
    path("jinja/", jinja),
    path("twice/", twice),
    path("text/", text),
    path("json/", json),
    path("stream/", stream),
    path("comment/", comment),
    path("category/", category),
    path("cached/", cached),
    path("shared/", shared),
    path("part/", part),
    path("shared/part/", shared_page(part)),
    path("cached_shared/", cached_shared),
]


@pytest.fixture
def article() -> Article:
    return Article.objects.create(author=factories.user())


def an_editor() -> User:
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_numbers"))
    return user


@pytest.fixture
def editor() -> Client:
    return factories.browser(an_editor())


@pytest.fixture(autouse=True)
def pages(settings: Settings) -> None:
    """Adds a cache of pages."""
    settings.CACHES = {
        **settings.CACHES,
        "pages": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    }
    caches["pages"].clear()


def numbers(page: str) -> list[str]:
    """Returns the numbers of the panel."""
    panel = page.partition(FOUND)[2].partition("</section>")[0]
    return [part.partition("<")[0] for part in panel.split("<dd>")[1:]]


def view(obj: Any, times: int) -> None:
    for _ in range(times):
        tracker.record(factories.hit(subject_of(obj)))


def test_it_shows_what_the_reports_say(article: Article, editor: Client) -> None:
    view(article, 3)
    flush()
    view(article, 2)
    reader = Visitor("reader")
    tracker.record(factories.hit(subject_of(article), visitor=reader))
    assert numbers(editor.get("/plain/").text) == ["6", "6", "6"]
    tracker.record(
        factories.hit(visitor=reader, part_record=Reading(subject_of(article), 5, 60, stage=READS))
    )
    for _ in range(2):
        page = editor.get("/plain/").text
        assert numbers(page) == ["6", "6", "6", "1"]
        day, seen = (
            numbers_reports.views_in([article], days=1)[article],
            reports.visitors([article])[article],
        )
        assert [day, seen, numbers_reports.reading(article).reads] == [6, 6, 1]
        assert "</section>6</p>" in page  # the count behind it
        flush()


def test_reads_of_a_lost_hash_are_those_of_the_reports(
    article: Article, editor: Client, redis: Any
) -> None:
    reader = Visitor("reader")

    def read(visitor: Visitor) -> None:
        tracker.record(factories.hit(subject_of(article), visitor=visitor))
        tracker.record(
            factories.hit(
                visitor=visitor, part_record=Reading(subject_of(article), 5, 60, stage=READS)
            )
        )

    read(reader)
    flush()
    redis.delete(f"reading:{subject_of(article)}")
    read(Visitor("another"))
    assert numbers_reports.reading(article).reads == 2
    assert numbers(editor.get("/plain/").text)[3] == "2"


def test_the_panel_and_the_page_count_the_view_of_the_page(editor: Client) -> None:
    post = factories.post()
    page = editor.get("/viewed/").text
    assert numbers(page) == ["1", "1", "1"]
    assert "</section>1</p>" in page
    assert reports.views([post]) == {post: 1}


def test_a_model_of_another_package_has_a_panel(settings: Settings, editor: Client) -> None:
    settings.READTRACK = {
        "MODELS": {"site.Gadget": {"counted": True}},
        "NUMBERS": {"history": False},
    }
    gadget = Gadget.objects.create(name="x")
    view(gadget, 2)
    flush()
    assert numbers(editor.get("/plain/", {"model": "gadget"}).text) == [
        "2",
        "2",
    ]  # without the last day


@pytest.mark.parametrize("url", ["/plain/", "/asynchronous/", "/jinja/", "/cached/"])
def test_authors_and_editors_see_it_and_no_one_else(url: str, article: Article) -> None:
    editor, root = an_editor(), User.objects.create_superuser("root")

    def fetch(user: Any) -> str:
        if url != "/asynchronous/":
            return str(factories.browser(user).get(url).text)
        client = AsyncClient()
        if user:
            client.force_login(user)
        return str(factories.fetch_async(client, url).text)

    others = [None, factories.user(), factories.user(is_staff=True)]
    for _ in range(2):  # out of the cache, too
        for user in others:
            page = fetch(user)
            assert "readtrack-panel" not in page
            assert "!rt!" not in page
        for user in (article.author, editor, root):
            assert FOUND in fetch(user)


def test_a_panel_makes_a_page_private_and_any_page_of_its_kind_different_for_each(
    article: Article, editor: Client
) -> None:
    mine, others = editor.get("/cached/"), factories.browser().get("/cached/")
    assert FOUND in mine.text
    assert {"private", "max-age=0"} <= set(mine["Cache-Control"].split(", "))
    assert "Expires" not in mine
    assert "private" not in others["Cache-Control"]
    assert "Cookie" in mine["Vary"]
    assert "Cookie" in others["Vary"]


def test_a_cache_outside_of_the_middleware_keeps_no_panel(
    article: Article, editor: Client, settings: Settings
) -> None:
    outer = (
        "django.middleware.cache.UpdateCacheMiddleware",
        "django.middleware.cache.FetchFromCacheMiddleware",
    )
    settings.MIDDLEWARE = [outer[0], *settings.MIDDLEWARE, outer[1]]
    settings.CACHE_MIDDLEWARE_ALIAS = "pages"
    for client, is_shown in (
        (editor, True),
        (factories.browser(), False),
        (editor, True),
        (factories.browser(), False),
    ):
        assert (FOUND in client.get("/plain/").text) is is_shown


@pytest.mark.parametrize("url", ["/shared/", "/cached_shared/", "/plain/"])
def test_a_shared_page_has_none(
    url: str, article: Article, editor: Client, settings: Settings
) -> None:
    settings.READTRACK = {"SCRIPT": {"shared_paths": ["^/plain/"]}}
    for _ in range(2):
        response = editor.get(url)
        assert "readtrack-panel" not in response.text
        assert "!rt!panel" not in response.text
        assert "Cookie" not in response.get("Vary", "")


def test_a_part_of_a_page_out_of_a_cache_has_the_panel_of_the_page_that_it_is_in(
    article: Article, editor: Client
) -> None:
    for url, is_shown in (("/part/", True), ("/shared/part/", False), ("/part/", True)):
        response = editor.get(url)
        assert (FOUND in response.text) is is_shown
        assert ("Cookie" in response.get("Vary", "")) is is_shown
        assert "!rt!" not in response.text
    assert FOUND not in factories.browser().get("/part/").text


@pytest.mark.parametrize("url", ["/text/", "/json/", "/stream/", "/category/"])
def test_only_a_whole_page_of_html_about_a_counted_object_has_one(
    url: str, article: Article, editor: Client
) -> None:
    response = editor.get(url)
    page = response.getvalue().decode()
    assert "readtrack-panel" not in page
    assert "!rt!" not in page


def test_without_the_middleware_there_is_none(rf: Any, article: Article) -> None:
    request = rf.get("/")
    request.user = User.objects.create_superuser("root")
    assert html(request) == "<p>0</p>"


def test_a_page_has_one_panel(article: Article, editor: Client) -> None:
    page = editor.get("/twice/").text
    assert page.count(FOUND) == 1
    assert "!rt!" not in page


def test_what_a_visitor_types_is_no_panel(article: Article, editor: Client) -> None:
    other = "!rt!panel!site.article:1|!0!AAAAAAAAAAAAAAAA!"
    assert editor.get("/comment/", {"text": f"a{other}b"}).text == "ab"


def test_it_leads_staff_to_the_objects_page(article: Article, editor: Client) -> None:
    page = editor.get("/plain/").text
    link = page.partition(FOUND)[2].partition('<a href="')[2].partition('"')[0]
    assert editor.get(link).status_code == 200
    assert (
        "<a" not in factories.browser(article.author).get("/plain/").text
    )  # who could not open it


def test_a_site_without_the_admin_has_no_page_to_lead_to(
    article: Article, settings: Settings
) -> None:
    assert numbers_url(article) == f"/admin/readtrack/dashboard/object/{subject_of(article)}/"
    settings.ROOT_URLCONF = "tests.site.no_urls"
    assert numbers_url(article) == ""


def test_a_row_that_is_gone_has_none(article: Article, editor: Client) -> None:
    place = str(Placeholder.of(PANEL, article))
    article.delete()
    assert editor.get("/comment/", {"text": place}).text == ""


def test_a_title_cannot_break_out_and_a_strict_policy_allows_the_panel(editor: Client) -> None:
    factories.post(title='"><script>')
    page = editor.get("/plain/", {"model": "post"}).text
    assert 'aria-label="Numbers of &quot;&gt;&lt;script&gt;"' in page
    for forbidden in ("style=", "<script", "<style", "onclick"):
        assert forbidden not in page


def test_it_takes_one_round_trip_and_others_take_none(
    article: Article, editor: Client, wire: Wire
) -> None:
    view(article, 2)
    flush()
    counts = {}
    for name, client in {"editor": editor, "reader": factories.browser(factories.user())}.items():
        client.get("/plain/")
        with CaptureQueriesContext(connection) as queries, wire.counted() as trips:
            client.get("/plain/")
        counts[name] = trips[0], len(queries)
    # The count behind it is a trip of its own. Permissions take two queries, row, day, counts and
    # reads one each.
    assert counts["editor"] == (counts["reader"][0] + 1, counts["reader"][1] + 6)


def test_without_redis_it_says_so(article: Article, editor: Client, start_redis: Start) -> None:
    valkey = start_redis()
    view(article, 3)
    flush()
    assert "as last saved" not in editor.get("/plain/").text
    valkey.stop()
    page = editor.get("/plain/").text
    assert "as last saved" in page
    assert numbers(page) == ["3", "3", "3"]


@pytest.mark.django_db(transaction=True)
def test_an_error_of_the_database_costs_the_panel_and_not_the_page(
    article: Article, editor: Client
) -> None:
    table = "readtrack_numbers_history"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
        try:
            page = editor.get("/plain/")
        finally:
            cursor.execute(f"ALTER TABLE {table}_away RENAME TO {table}")
    assert (page.status_code, page.text) == (200, "<p>0</p>")


def nobody_but_root(user: Any, obj: Any) -> bool:
    """A site's rule."""
    return user.username == "root" and obj is not None


def test_the_sites_own_rule_decides(article: Article, editor: Client, settings: Settings) -> None:
    settings.READTRACK = {"VIEW_NUMBERS": f"{__name__}.nobody_but_root"}
    assert FOUND not in editor.get("/plain/").text
    assert FOUND not in factories.browser().get("/plain/").text
    assert FOUND in factories.browser(User.objects.create_superuser("root")).get("/plain/").text


@pytest.mark.usefixtures("pseudo")
def test_every_word_is_marked_for_translation(editor: Client, start_redis: Start) -> None:
    valkey = start_redis()
    article = Article.objects.create(title="1")
    tracker.record(factories.hit(subject_of(article), visitor=Visitor("a")))
    tracker.record(
        factories.hit(
            visitor=Visitor("a"), part_record=Reading(subject_of(article), 5, 60, stage=READS)
        )
    )
    flush()
    valkey.stop()
    panel = editor.get("/plain/").text.partition(FOUND)[2].partition("</section>")[0]
    words = " ".join(part.partition(">")[2] for part in panel.split("<"))
    assert unmarked(words) == []
    assert "⟦Reads⟧" in words
    assert 'aria-label="⟦Numbers of' in panel


def test_a_cached_panel_of_a_model_that_is_gone_is_empty() -> None:
    assert panel._panel("gone.model:1", "", an_editor()) == ""


def test_it_says_how_many_times_the_usual_views_the_object_has(wire: Wire) -> None:
    usual.peers(views=20)
    post = usual.article(timedelta(hours=50), views=46, title="Good")
    usual.renew()
    with CaptureQueriesContext(connection) as queries, wire.counted() as trips:
        numbers = panel.numbers(subject_of(post), post)
    assert numbers["times_usual"] == "2.3"
    assert trips[0] == 1
    assert len([query for query in queries if "readtrack_numbers_usual" in query["sql"]]) == 1
    user = an_editor()
    html_of_panel = panel._panel(subject_of(post), "", user)
    assert "<dt>× usual</dt><dd>2.3</dd>" in html_of_panel
    assert "× usual" not in panel._panel(subject_of(factories.post()), "", user)
