"""Parts of a page that depend on the reader: dots, numbers of news, and blocks."""

import json
from typing import Any, NamedTuple

import pytest
from asgiref.sync import async_to_sync
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.template import Context, Template, TemplateSyntaxError
from django.test import RequestFactory

from readtrack import tracker
from readtrack.middleware import ReadTrackMiddleware
from readtrack.page import filling, stream
from readtrack.page.placeholders import ELSE, END, IF, Placeholder
from readtrack.page.rendering import new_items
from readtrack.request import Recorder, TrackedRequest
from readtrack.store import read_state, scripts
from readtrack.store.read_state import Publication
from readtrack.subjects import subject_of
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

ROW = "{% if_unread c %}<b>{{ c.name }}</b>{% else %}<i>{{ c.name }}</i>{% endif_unread %}"


def rendered(source: str, **values: Any) -> str:
    return Template("{% load readtrack cache %}" + source).render(Context(values))


def served(view: Any, user: Any) -> Any:
    request: Any = RequestFactory().get("/")
    request.user = user
    return ReadTrackMiddleware(view)(request)


def page(source: str, user: Any, **values: Any) -> str:
    """Returns the page as the middleware returns it."""

    def view(request: TrackedRequest) -> HttpResponse:
        return HttpResponse(rendered(source, request=request, **values))

    return str(served(view, user).text)


@pytest.fixture
def user() -> Any:
    return factories.user()


@pytest.fixture
def pair(user: Any) -> list[Any]:
    """Returns a category that is read and one that is unread."""
    categories = [factories.category(name="read"), factories.category(name="new")]
    tracker.mark_read(user, categories[:1])
    return categories


def test_a_row_looks_different_while_it_is_unread(user: Any, pair: list[Any]) -> None:
    source = f"{{% for c in cs %}}{ROW}{{% endfor %}}"
    assert page(source, user, cs=pair) == "<i>read</i><b>new</b>"
    assert rendered(source, cs=pair, user=user) == "<i>read</i><b>new</b>"
    assert rendered(source, cs=pair) == "<i>read</i><i>new</i>"


def test_without_an_else_part_a_read_category_shows_nothing(user: Any, pair: list[Any]) -> None:
    source = "{% for c in cs %}{% if_unread c %}{{ c.name }}{% endif_unread %}{% endfor %}"
    assert page(source, user, cs=pair) == "new"


def test_parts_stand_inside_each_other_with_tags_in_them(user: Any, pair: list[Any]) -> None:
    source = (
        "{% if_unread new %}1{% if_unread read %}2{% view_count p exact %}"
        "{% else %}3{% unread_dot new %}{% endif_unread %}4"
        "{% else %}5{% if_unread new %}6{% endif_unread %}{% endif_unread %}7"
    )
    html = page(source, user, read=pair[0], new=pair[1], p=factories.post(view_count=9))
    assert html.replace(new_items(0), "*") == "13*47"
    tracker.mark_read(user, pair)
    assert page(source, user, read=pair[0], new=pair[1], p=factories.post()) == "57"


def test_a_page_of_fifty_rows_is_one_round_trip(user: Any, wire: Wire) -> None:
    categories = [factories.category() for _ in range(50)]
    source = f"{{% for c in cs %}}{ROW}{{% unread_dot c %}}{{% unread_count c %}}{{% endfor %}}"
    with wire.counted() as trips:
        assert page(source, user, cs=categories).count("<b>") == 50
    assert trips == [1]


def test_a_cached_fragment_is_each_readers_own_and_live(user: Any, pair: list[Any]) -> None:
    source = f"{{% cache 60 rows %}}{{% for c in cs %}}{ROW}{{% unread_dot c %}}{{% endfor %}}{{% endcache %}}"
    other = factories.user()
    assert "<i>read</i><b>new</b>" in page(source, user, cs=pair)
    assert page(source, other, cs=[]).count("<b>") == 2
    tracker.mark_read(other, pair)
    assert page(source, other, cs=[]) == "<i>read</i><i>new</i>"


def test_parts_may_be_cut_where_a_page_is_streamed(user: Any, pair: list[Any]) -> None:
    whole = rendered(ROW * 2 + "end", c=pair[1], request=_tracked())
    for size in (1, 7, 40, 200):
        pieces = _pieces(whole, size)

        def view(request: TrackedRequest, pieces: list[str] = pieces) -> StreamingHttpResponse:
            request.readtrack.read(pair[0])
            return StreamingHttpResponse(iter(pieces))

        assert served(view, user).getvalue().decode() == "<b>new</b>" * 2 + "end"


def test_parts_are_cut_out_of_an_asynchronous_stream_too(user: Any, pair: list[Any]) -> None:
    pieces = _pieces(rendered(ROW, c=pair[1], request=_tracked()), 9)

    async def chunks() -> Any:
        for piece in pieces:
            yield piece.encode()

    async def collect() -> bytes:
        response = StreamingHttpResponse(chunks())
        stream.fill(response, lambda: user.pk)
        return b"".join([chunk async for chunk in response.streaming_content])  # type: ignore[union-attr]

    assert async_to_sync(collect)() == b"<b>new</b>"


@pytest.mark.parametrize(
    "text", ["Hello!", "!rt", "!rt!dot!site.category:1!0!AAAA", "!rt!if!x!1!AAAAAAAAAAAAAAAA"]
)
def test_a_stream_that_only_looks_like_a_placeholder_at_its_end_is_whole(
    user: Any, text: str
) -> None:
    async def chunks() -> Any:
        yield text[:3].encode()
        yield text[3:].encode()

    async def collect() -> bytes:
        response = StreamingHttpResponse(chunks())
        stream.fill(response, lambda: user.pk)
        return b"".join([chunk async for chunk in response.streaming_content])  # type: ignore[union-attr]

    assert async_to_sync(collect)() == text.encode()
    response = served(lambda request: StreamingHttpResponse([text[:3], text[3:]]), user)
    assert response.getvalue() == text.encode()


def _tracked() -> Any:
    request: Any = RequestFactory().get("/")
    request.readtrack = Recorder()
    return request


def _pieces(text: str, size: int) -> list[str]:
    """Returns the text in pieces, cut anywhere, even within placeholders."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def test_parts_are_cut_out_of_json_too(user: Any, pair: list[Any]) -> None:
    def view(request: TrackedRequest) -> JsonResponse:
        return JsonResponse(
            {"html": rendered(ROW + "{% unread_dot c %}", request=request, c=pair[1])}
        )

    assert json.loads(served(view, user).content)["html"] == "<b>new</b>" + new_items(0)


def test_an_end_that_begins_nowhere_does_no_harm(user: Any, pair: list[Any]) -> None:
    subject = subject_of(pair[0])
    content = f"a{Placeholder(ELSE, subject)}b{Placeholder(END, subject)}c"
    assert filling.filled(content.encode(), lambda: user.pk) == b"abc"


class Marks(NamedTuple):
    """The marks of an `if_unread`, as somebody may find them in a mail."""

    start: str
    middle: str
    end: str


@pytest.fixture
def found(pair: list[Any]) -> Marks:
    """Returns the marks of a category that is read."""
    subject = subject_of(pair[0])
    return Marks(*(str(Placeholder(kind, subject)) for kind in (IF, ELSE, END)))


PAGES = {
    "a start": "before{start}after",
    "starts": "before{start}{start}after",
    "a start and a middle": "before{start}{middle}after",
    "a start and an end": "{start}before{end}after",
    "a start, two ends": "{start}before{end}after{end}",
    "a middle and an end": "before{middle}{end}after",
    "an end before a start": "before{end}{start}after",
}


@pytest.mark.parametrize("source", PAGES.values(), ids=PAGES)
def test_a_mark_that_somebody_pastes_hides_nothing(user: Any, found: Marks, source: str) -> None:
    text = source.format(**found._asdict())
    assert filling.filled(text.encode(), lambda: user.pk) == b"beforeafter"
    parts = _pieces(text, 30)
    response = served(lambda request: StreamingHttpResponse(parts), user)
    assert response.getvalue() == b"beforeafter"


@pytest.mark.parametrize("pasted", ["start", "middle", "end"])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_mark_that_somebody_pastes_leaves_other_parts_alone(
    user: Any, pair: list[Any], found: Marks, pasted: str, place: int
) -> None:
    request = _tracked()
    whole = rendered(
        "{% if_unread c %}new{% else %}old{% endif_unread %}", c=pair[1], request=request
    )
    other = str(Placeholder(ELSE, subject_of(pair[1])))
    new, old = whole.split(other)
    pieces = ["a", new, other, old, "z"]
    pieces[place] += getattr(found, pasted)
    assert filling.filled("".join(pieces).encode(), lambda: user.pk) == b"anewz"


def test_a_start_that_somebody_pastes_holds_a_stream_up_for_a_while_only(
    user: Any, found: Marks
) -> None:
    parts = ["a", found.start, *["." * 1_000] * (stream.LONGEST_WAIT // 1_000 + 1), "z"]
    response = served(lambda request: StreamingHttpResponse(parts), user)
    sent = list(response.streaming_content)
    assert b"".join(sent) == "".join(parts).replace(found.start, "").encode()
    assert len(sent) > 2


def test_a_post_without_read_state_has_no_dot(user: Any, settings: Any) -> None:
    post = factories.post()
    source = (
        "{% unread_dot p %}{% unread_count p %}{% if_unread p %}new{% else %}old{% endif_unread %}"
    )
    assert page(source, user, p=post) == rendered(source, p=post, user=user) == "old"
    settings.READTRACK = {"MODELS": {"site.Post": {"read_state": True}}}
    assert "new" in page(source, user, p=post)


def test_the_number_of_news_is_shown_where_the_strategy_counts(
    user: Any, pair: list[Any], settings: Any
) -> None:
    source = "{% unread_count c as items %}{% unread_dot c as is_unread %}{{ items }} {{ is_unread }} {% unread_count c %}"
    assert page(source, user, c=pair[1]) == "1 True " + new_items(0)
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    tracker.mark_read(user, pair)
    subject = subject_of(pair[1])
    scripts.run_all(*read_state.publish([Publication(subject)] * 1200))
    html = page(source, user, c=pair[1])
    assert html.startswith('1200 True <span class="readtrack-unread" title="1,200">1.2k ')
    assert '<span class="readtrack-dot__text">unread</span>' in html
    assert page(source, user, c=pair[0]) == "0 False "


@pytest.mark.parametrize(
    "tag", ["{% if_unread %}{% endif_unread %}", "{% if_unread c %}", "{% unread_count %}"]
)
def test_a_tag_that_is_written_wrongly_says_so(tag: str) -> None:
    with pytest.raises(TemplateSyntaxError):
        rendered(tag)


def test_a_row_has_no_name_to_give_it() -> None:
    with pytest.raises(TemplateSyntaxError, match="unread_dot object as name"):
        rendered("{% if_unread c as is_new %}{% endif_unread %}")


def test_a_value_outside_a_request_is_the_templates_users(user: Any, pair: list[Any]) -> None:
    source = "{% unread_dot c as is_unread %}{{ is_unread }}"
    assert rendered(source, c=pair[1], user=user) == "True"
    assert rendered(source, c=pair[0], user=user) == rendered(source, c=pair[1]) == "False"
