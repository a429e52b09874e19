"""News of live dots: one small answer that is the same for everybody, and the reader's own dots."""

import gzip
import hashlib
import json
import re
import time
from typing import Any

import pytest
from django.http import HttpResponse
from django.template import engines
from django.test import Client
from django.urls import path
from pytest_django import Settings
from pytest_django.fixtures import DjangoAssertNumQueries
from redis import Redis

from readtrack import reports, tracker
from readtrack.live import dots as live
from readtrack.live.script import LiveDotsAddition
from readtrack.page.placeholders import DOT, PAGE, TOLD, UNREAD, Placeholder
from readtrack.page.rendering import rendered
from readtrack.reports.page_state import PageQuestion, PageState
from readtrack.script import shown
from readtrack.script.rendering import element_keys
from readtrack.script.shared import shared_page
from readtrack.subjects import subject_of
from tests.conftest import use_redis
from tests.site.models import Category, Post
from tests.site.urls import urlpatterns as site_urls
from tests.support import factories
from tests.support.wire import Wire

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
]

SOURCE = """{% load readtrack %}{% for category in categories %}{% unread_dot category %}{% endfor %}
{% view_count post %}{% readtrack_live %}"""
OF_JINJA = """{% for category in categories %}{{ unread_dot(category) }}{% endfor %}
{{ readtrack_live(title=True) }}"""
OWN = {"Sec-Fetch-Site": "same-origin"}
DAY = 86_400
LIVE = LiveDotsAddition()


def listing(request: Any, source: str = SOURCE, engine: str = "django") -> HttpResponse:
    categories = Category.objects.order_by("pk")
    if "backwards" in request.GET:
        categories = categories.reverse()
    post = Post.objects.get()
    request.readtrack.view(post)
    request.readtrack.read(post.category)
    context = {"categories": categories, "post": post}
    return HttpResponse(engines[engine].from_string(source).render(context, request))


urlpatterns = [
    *site_urls,
    path("live/", listing),
    path("shared/", shared_page(listing)),
    path("title/", listing, {"source": SOURCE.replace("live %}", "live title=True badge=True %}")}),
    path("jinja/", listing, {"source": OF_JINJA, "engine": "jinja2"}),
    path("plain/", listing, {"source": SOURCE.replace("live %}", "script %}")}),
]


@pytest.fixture
def other(post: Post) -> Category:
    """Returns a category that the page of the post does not put out."""
    return factories.category()


def attribute(name: str, html: str) -> str:
    [value] = re.findall(f' data-{name}="([^"]*)"', html)
    return str(value)


def address(html: str) -> str:
    """Returns the address at which the page's script asks for news."""
    return f"{attribute('news', html)}?{attribute('dots', html)}"


def key_of(category: Category) -> str:
    [key] = element_keys(Placeholder(DOT, subject_of(category)))
    return key


def tell(browser: Client, html: str, state: str = "") -> Any:
    body = f"{attribute('page', html)}\n\n{state}\n0"
    return browser.post("/readtrack/page.js", body, content_type="text/plain", headers=OWN)


def published(redis: Redis, category: Category) -> int:
    return int(redis.get(f"category:{subject_of(category)}:published") or 0)


def test_news_are_the_times_of_the_last_publications(
    post: Post, category: Category, other: Category, redis: Redis
) -> None:
    page = factories.browser(factories.user()).get("/live/").text
    redis.delete(f"category:{subject_of(category)}:published")
    tracker.mark_unread([other])
    answer = factories.browser().get(address(page))
    assert answer.json() == {"dots": {key_of(other): published(redis, other)}, "numbers": {}}
    assert abs(published(redis, other) / 1e6 - time.time()) < 60


def test_numbers_are_apart_because_each_publication_changes_them(
    post: Post, category: Category, settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    tracker.mark_unread([category])
    subject = subject_of(category)
    placeholders = [Placeholder(DOT, subject), Placeholder(UNREAD, subject)]
    name = live.name_of(live.dots_of(placeholders))
    [dot], [number] = map(element_keys, placeholders)
    time = published(redis, category)
    assert factories.browser().get(f"/readtrack/news/?{name}").json() == {
        "dots": {dot: time},
        "numbers": {number: time},
    }


def test_a_cache_may_give_the_same_answer_to_everybody(post: Post, other: Category) -> None:
    browsers = [factories.browser(user) for user in (factories.user(), factories.user(), None)]
    addresses = set()
    for browser in browsers:
        for page in ("/live/", "/live/?backwards", "/shared/"):
            addresses.add(address(browser.get(page).text))
    [url] = addresses
    answers = [browser.get(url) for browser in browsers]
    assert len({answer.content for answer in answers}) == 1
    for answer in answers:
        assert answer["Cache-Control"] == "public, max-age=5, stale-while-revalidate=1"
        assert not answer.has_header("Vary")
        assert not answer.cookies


def test_news_take_one_round_trip_and_no_query(
    post: Post, other: Category, wire: Wire, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    browser = factories.browser(factories.user())
    url = address(browser.get("/live/").text)
    with wire.counted() as trips, django_assert_num_queries(0):
        browser.get(url)
    assert trips == [1]


def test_a_name_that_is_not_ours_reads_nothing(post: Post, wire: Wire) -> None:
    browser = factories.browser()
    url = address(browser.get("/live/").text)
    own_name = url.partition("?")[2]
    forged = [
        own_name[:-1] + "_",
        own_name.partition(":")[2],
        "x" * 10_000,
        "",
        "%00",
        "..",
        "!rt!",
    ]
    for name in forged:
        with wire.counted() as trips:
            answer = browser.get(f"/readtrack/news/?{name}")
        assert (answer.status_code, answer["Cache-Control"]) == (403, "no-store"), name
        assert trips == [0]
    assert live.parse(own_name[:-1] + "é") is None


def test_a_name_of_another_version_or_prefix_reads_nothing(post: Post, settings: Settings) -> None:
    browser = factories.browser()
    url = address(browser.get("/live/").text)
    name = live._signer().sign_object(["", [["subject"]]])
    assert browser.get(f"/readtrack/news/?{name}").status_code == 403
    settings.READTRACK = {"PREFIX": "other:"}
    assert browser.get(url).status_code == 403


def test_without_redis_no_cache_keeps_the_answer(post: Post, settings: Settings) -> None:
    browser = factories.browser()
    url = address(browser.get("/live/").text)
    use_redis(settings, "redis://127.0.0.1:1")
    answer = browser.get(url)
    assert (answer.status_code, answer["Cache-Control"]) == (503, "no-store")
    assert int(answer["Retry-After"]) > 0


def test_only_who_may_read_the_address_asks_by_get(post: Post) -> None:
    browser = factories.browser()
    url = address(browser.get("/live/").text)
    assert browser.post(url).status_code == 405
    assert browser.head(url).status_code == 200


def test_news_are_public_where_everybody_has_to_sign_in(post: Post, settings: Settings) -> None:
    url = address(factories.browser(factories.user()).get("/live/").text)
    required = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, required]
    browser = factories.browser()
    assert browser.get("/live/").status_code == 302
    assert browser.get(url).status_code == 200


def test_a_page_with_more_dots_than_an_address_holds_names_a_part_of_them() -> None:
    placeholders = [
        Placeholder(DOT, f"site.page:{number}{'x' * 90}") for number in range(100_000, 101_000)
    ]
    every = live.dots_of(placeholders)
    # No two of them share their letters, so that packing does not help.
    dots = [dot._replace(subject=shuffled(dot.subject)) for dot in every.dots]
    name = live.name_of(every._replace(dots=dots))
    parsed = live.parse(name)
    assert len(name) <= live.LONGEST_NAME
    assert parsed is not None
    assert 0 < len(parsed.dots) < len(dots)
    assert live.name_of(live.dots_of([])) == ""


def shuffled(text: str) -> str:
    return f"site.page:{hashlib.sha512(text.encode()).hexdigest()}"


def test_the_script_asks_for_dots_and_counts_nothing(
    post: Post, category: Category, other: Category, redis: Redis
) -> None:
    user = factories.user()
    browser = factories.browser(user)
    page = browser.get("/live/").text
    tracker.mark_unread([category, other])
    answer = tell(browser, page, state="dots").json()
    assert list(answer["elements"]) == [key_of(category), key_of(other)]
    assert all("readtrack-dot" in html for html in answer["elements"].values())
    assert json.loads(answer["news"]) == {
        "dots": {key_of(each): published(redis, each) for each in (category, other)},
        "numbers": {},
        "unread": 2,
    }
    assert reports.unread(user, [category, other]) == {category, other}
    assert reports.views([post]) == {post: 1}


def test_a_tab_that_is_open_for_days_asks_for_dots_and_counts_no_more(
    post: Post, category: Category, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = factories.browser(factories.user())
    page = browser.get("/live/").text
    in_days = time.time() + 3 * DAY
    monkeypatch.setattr("readtrack.script.shown.time", lambda: in_days)
    assert tell(browser, page).status_code == 403
    assert list(tell(browser, page, state="dots").json()["elements"]) == [key_of(category)]


def test_the_first_answer_says_what_the_page_has_put_out(
    post: Post, category: Category, other: Category
) -> None:
    browser = factories.browser(factories.user())
    answer = tell(browser, browser.get("/live/").text).json()
    assert answer["reads"] is True
    assert json.loads(answer["news"])["unread"] == 1


def test_nobody_who_has_no_dots_is_told_of_news(post: Post, settings: Settings) -> None:
    browser = factories.browser()
    assert tell(browser, browser.get("/live/").text).json()["news"] == ""
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}}
    browser = factories.browser()
    tell(browser, browser.get("/live/").text)
    assert tell(browser, browser.get("/live/").text).json()["news"] != ""


def test_the_times_are_read_before_the_dots() -> None:
    """What is published in between then is newer than the page, and the script asks again."""
    question = PageQuestion(dots=["site.category:1"], reader=1, has_times=True)
    assert [call.script for call in question.calls] == ["MGET", "unread_bitmap"]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_dot_whose_read_state_is_not_known_has_no_time_and_is_asked_for_again(
    is_known: bool,
) -> None:
    """Redis may know the time already while its read state is being restored."""
    dot = Placeholder(DOT, "site.category:1")
    page = [Placeholder(PAGE, shown.ANSWER), Placeholder(TOLD, LiveDotsAddition.name)]
    texts = {str(placeholder).encode(): placeholder for placeholder in [dot, *page]}
    unread = {dot.subject: 0} if is_known else {}
    html = rendered(texts, PageState({}, unread, {dot.subject: 5}))
    times = dict.fromkeys(element_keys(dot), 5) if is_known else {}
    assert json.loads(html[str(page[1]).encode()])["dots"] == times


@pytest.mark.parametrize("has_text", [False, True])
def test_a_page_without_live_dots_pays_nothing_for_them(post: Post, has_text: bool) -> None:
    browser = factories.browser(factories.user())
    page = browser.get("/plain/").text
    assert re.search(rf'src="/readtrack/page.js\?{shown.version()}" data-page="[^"]+" defer', page)
    assert set(tell(browser, page).json()) == {"elements", "page", "again"}
    without_live = shown.scripts()[shown.version(has_text=has_text)]
    with_live = shown.scripts()[shown.version(has_text=has_text, options=LIVE.option)]
    assert with_live == without_live + LIVE.source()
    assert has_text or len(gzip.compress(with_live, 9)) <= 2_400


def test_the_options_of_the_tag_are_attributes(post: Post) -> None:
    page = factories.browser().get("/title/").text
    version = shown.version(options=LIVE.option)
    assert re.search(rf'page.js\?{version}" data-dots="[^"]+" data-page="[^"]+" data-news=', page)
    assert " data-title data-badge defer>" in page


def test_jinja_has_the_same_tag(post: Post, other: Category) -> None:
    browser = factories.browser(factories.user())
    page = browser.get("/jinja/").text
    assert address(page) == address(browser.get("/live/").text)
    assert " data-title defer>" in page
