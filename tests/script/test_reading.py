"""Reads: what a page's script tells of its text, and what of it counts."""

import gzip
import re
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import hypothesis
import pytest
from django.core import signing
from django.http import HttpResponse
from django.template import engines
from django.test import Client
from django.urls import path
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, reports, tracker
from readtrack.flush.run import flush
from readtrack.hits.stages import ENGAGED, READS
from readtrack.hits.visitors import Visitor
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import Breakdown, History
from readtrack.script import keys as script_keys
from readtrack.script import shown
from readtrack.script.reading import Reading
from readtrack.script.shared import shared_page
from readtrack.sql import databases
from readtrack.store import keys
from readtrack.store.circuit import circuit
from readtrack.subjects import subject_of
from tests.site.models import Category, Post
from tests.site.urls import urlpatterns as site_urls
from tests.support import buffered, counts, factories
from tests.support.depth import DEEP, examples

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("_both_ways"),
]

numbers = count()
OWN = {"Sec-Fetch-Site": "same-origin"}
WORDS = 238  # 51 seconds
SOURCE = (
    "{% load readtrack %}{% unread_dot post.category %}{% readtrack_text post %}<p>{{ text }}</p>"
    "{% endreadtrack_text %}{% readtrack_script %}"
)


def page(request: Any, pk: int, source: str = SOURCE) -> HttpResponse:
    post = Post.objects.get(pk=pk)
    request.readtrack.view(post)
    request.readtrack.read(post.category)
    context = {"post": post, "text": "word " * WORDS}
    return HttpResponse(engines["django"].from_string(source).render(context, request))


PLAIN = "{% load readtrack %}{% readtrack_text nothing %}text{% endreadtrack_text %}{% readtrack_script %}"
urlpatterns = [
    *site_urls,
    path("text/<int:pk>/", page),
    path("shared/<int:pk>/", shared_page(page)),
    path("plain/<int:pk>/", page, {"source": PLAIN}),
]


class Tab:
    """A page in a browser of its own, made some seconds ago."""

    def __init__(
        self,
        post: Post,
        *,
        browser: Client | None = None,
        age: int = 600,
        headers: Any = None,
        kind: str = "text",
    ) -> None:
        self.browser = browser or factories.browser()
        self.html = self.browser.get(f"/{kind}/{post.pk}/", headers=headers).text
        [(self.version, token)] = re.findall(r'page.js\?(\w+)" data-page="([^"]*)"', self.html)
        *told, made = signing.loads(token, salt=keys.salt("page"))
        self.token = signing.dumps([*told, made - age], salt=keys.salt("page"), compress=True)

    def follow_honeypot(self) -> Any:
        """Does what a robot does that keeps no cookies."""
        self.browser.cookies.clear()
        own = {"Referer": "http://testserver/"}
        return self.browser.get(factories.honeypot(), headers=own)

    def tell(self, state: str = "", **headers: str) -> Any:
        return self.browser.post(
            "/readtrack/page.js", f"{self.token}\n\n{state}", "text/plain", headers=OWN | headers
        )


def read(post: Post) -> tuple[int, int, int]:
    """Returns the post's views, engaged views and reads."""
    found = numbers_reports.reading(post)
    return found.views, found.engaged, found.reads


def test_a_page_without_a_text_pays_nothing_for_reading(
    post: Post, capsys: pytest.CaptureFixture[str]
) -> None:
    tab = Tab(post)
    browser = factories.browser()
    plain, whole = (
        browser.get(f"/readtrack/page.js?{version}").content for version in ("", tab.version)
    )
    sizes = [len(gzip.compress(script, 9)) for script in (plain, whole)]
    if DEEP:
        with capsys.disabled():
            sys.stdout.write(f"\npage.js: {sizes[0]} bytes gzipped, with reading {sizes[1]}\n")
    assert (sizes[0] <= 1_250, sizes[1] <= 1_850) == (True, True), (
        f"page.js has {sizes} bytes gzipped"
    )
    assert whole == plain + shown.READING
    assert f"page.js?{shown.version()}" in page_without_text(post)


def page_without_text(post: Post) -> str:
    html = factories.browser().get(f"/plain/{post.pk}/").text
    assert "data-read" not in html
    return html


def test_the_end_of_the_text_is_marked_with_the_time_that_it_takes(post: Post) -> None:
    tab = Tab(post)
    [token] = re.findall('data-page="([^"]*)"', tab.html)
    assert f'</p><span data-read="51" data-of="{token[-8:]}"></span>' in tab.html


def test_the_text_may_be_an_element_by_its_selector(post: Post) -> None:
    source = """{% load readtrack %}{% readtrack_text post selector="#text > *" %}<p>one</p>{% endreadtrack_text %}"""
    html = engines["django"].from_string(source).render({"post": post})
    assert html == '<p>one</p><span data-read="5" data-text="#text &gt; *"></span>'
    jinja = '{{ readtrack_text(post, "<p>") }}{{ readtrack_text(post, "a", "#text") }}{{ read_count(post) }}'
    assert engines["jinja2"].from_string(jinja).render({"post": post}) == (
        '&lt;p&gt;<span data-read="5"></span>a<span data-read="5" data-text="#text"></span>0'
    )


def test_a_read_counts_once_for_a_visitor_a_subject_and_a_window(post: Post, redis: Redis) -> None:
    tab = Tab(post)
    for _ in range(3):
        tab.tell("60 1")
    assert read(post) == (1, 1, 1)
    for _ in range(2):
        Tab(post, browser=tab.browser).tell("70 1")
    assert read(post) == (1, 1, 1)
    for name in (
        redis.keys("viewed:*") + redis.keys("reading:pass:*") + redis.keys("reading:stage:*")
    ):
        redis.delete(name)  # as they end with the window
    Tab(post, browser=tab.browser).tell("60 1")
    assert read(post) == (2, 2, 2)


@pytest.mark.parametrize("key", ["reading", "changed", "unsettled"])
def test_a_key_of_another_type_keeps_no_reader_from_being_counted(
    post: Post, redis: Redis, key: str
) -> None:
    subject = subject_of(post)
    names = {
        "reading": script_keys.reading(subject),
        "changed": keys.changed(keys.tag(subject)),
        "unsettled": keys.unsettled(keys.tag(subject)),
    }
    redis.set(names[key], "of somebody else")
    tab = Tab(post)
    for state in ("0 0", "60 1"):
        tab.tell(state)
    assert circuit.opened is None
    assert read(post) == ((1, 0, 0) if key == "reading" else (1, 1, 1))


def test_a_shared_page_has_readers_too(post: Post) -> None:
    tab = Tab(post, kind="shared")
    for state in ("", "", "8 0", "60 1", "60 1"):
        tab.tell(state)
    assert read(post) == (1, 1, 1)


def test_a_second_reader_is_a_second_read(post: Post) -> None:
    for number in range(3):
        browser = factories.browser(
            headers={"User-Agent": factories.BROWSER.replace("140", str(150 + number))}
        )
        Tab(post, browser=browser).tell(f"{60 + number} 1")
    assert read(post) == (3, 3, 3)
    assert numbers_reports.reading(post).ratio == 1.0
    assert numbers_reports.reading([post, factories.post()]) == numbers_reports.reading(post)
    template = "{% load readtrack %}{% read_count post %}{% read_count nothing %}"
    assert engines["django"].from_string(template).render({"post": post}) == "3"


@pytest.mark.parametrize(
    ("state", "age", "expected"),
    [
        ("0 0", 600, (1, 1, 0)),  # somebody is there
        ("60 0", 600, (1, 1, 0)),  # without the end of the text
        ("50 1", 600, (1, 1, 0)),  # too fast
        ("51 1", 600, (1, 1, 1)),
        ("51 1", 51, (1, 1, 1)),
        ("51 1", 40, (1, 1, 0)),  # faster than the page is old
        ("99999 1", 5, (1, 1, 0)),
    ],
)
def test_nobody_reads_faster_than_the_page_has_been_there(
    post: Post, state: str, age: int, expected: tuple[int, int, int]
) -> None:
    Tab(post, age=age).tell(state)
    assert read(post) == expected


def test_a_read_needs_a_view_of_the_window(post: Post, redis: Redis) -> None:
    tab = Tab(post, headers={"Sec-Purpose": "prefetch"})
    tab.tell("60 1")
    assert read(post) == (0, 0, 0)
    tab.tell()
    tab.tell()  # with the cookie of the answer
    tab.tell("60 1")
    assert read(post) == (1, 1, 1)


def test_a_long_text_may_be_read_longer_than_the_window(
    post: Post, redis: Redis, settings: Settings
) -> None:
    tab = Tab(post)
    tab.tell("20 0")
    [name] = redis.keys("reading:pass:*")
    assert 1800 < redis.ttl(name) <= 1800 + 51
    redis.delete(*redis.keys("viewed:*"))
    tab.tell("60 1")
    assert read(post) == (1, 1, 1)


def test_what_is_told_while_the_view_waits_in_the_buffer_is_lost_and_what_comes_later_counts_whole(
    settings: Settings, post: Post
) -> None:
    settings.READTRACK = {"BUFFER": {"seconds": 3600}}
    tab = Tab(post)
    tab.tell("51 1")
    assert read(post) == (0, 0, 0)
    buffered.send()
    assert read(post) == (1, 0, 0)
    tab.tell("60 1")
    assert read(post) == (1, 1, 1)


REFUSED: dict[str, Callable[[Tab], Any]] = {
    "garbage": lambda tab: tab.tell("60 1 1"),
    "no number": lambda tab: tab.tell("x 1"),
    "negative": lambda tab: tab.tell("-5 1"),
    "huge": lambda tab: tab.tell("9" * 50_000 + " 1"),
    "other digits": lambda tab: tab.tell("٦٠ 1"),
    "another site": lambda tab: tab.tell("60 1", **{"Sec-Fetch-Site": "cross-site"}),
    "a robot": lambda tab: tab.tell("60 1", **{"User-Agent": "Googlebot/2.1"}),
    "the honeypot": lambda tab: (tab.follow_honeypot(), tab.tell("60 1")),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_is_forged_or_comes_from_robots_is_no_read(post: Post, way: str) -> None:
    tab = Tab(post)
    REFUSED[way](tab)
    assert read(post) == (1, 0, 0)


@given(states=st.lists(st.text(max_size=20), min_size=5, max_size=10))
@hypothesis.settings(max_examples=examples(5))
def test_any_state_is_answered(post: Post, states: list[str]) -> None:
    tab = Tab(post)
    assert {tab.tell(state).status_code for state in states} == {200}


def test_pages_without_a_text_hear_of_none(post: Post) -> None:
    browser = factories.browser()
    browser.get(f"/text/{post.pk}/")
    token = shown.page_token(browser.get(f"/text/{post.pk}/").wsgi_request, views=[post])
    browser.post("/readtrack/page.js", f"{token}\n\n60 1", "text/plain", headers=OWN)
    assert read(post) == (1, 0, 0)


@pytest.mark.parametrize(
    "site",
    [
        {"SCRIPT": {"count_by": "script"}},
        {"SCRIPT": {"count_by": "server"}},
        {"ANONYMOUS": "hash"},
        {"UNIQUE": "set", "NUMBERS": {"funnels": True}},
    ],
)
def test_reads_count_under_any_settings(
    settings: Settings, post: Post, site: dict[str, Any]
) -> None:
    settings.READTRACK = site
    tab = Tab(post)
    for state in ("", "", "8 0", "60 1", "90 1"):
        tab.tell(state)
    assert read(post) == (1, 1, 1)


@pytest.mark.parametrize("header", ["Sec-GPC", "DNT"])
def test_who_opts_out_gets_no_cookie_and_is_forgotten_with_the_day(
    post: Post, redis: Redis, header: str
) -> None:
    tab = Tab(post, headers={header: "1"})
    tab.tell("60 1", **{header: "1"})
    assert read(post) == (1, 1, 1)
    assert not tab.browser.cookies
    assert all(redis.ttl(name) > 0 for name in redis.keys("reading:*:*:site.post:*"))


def test_a_refused_newcomer_reads_nothing(post: Post) -> None:
    Tab(post).tell("60 1")
    second = Tab(post)
    second.tell("60 1")
    assert read(post) == (1, 1, 1)


def test_ones_own_people_are_left_out(settings: Settings, post: Post) -> None:
    settings.READTRACK = {"EXCLUDE": {"staff": True}}
    Tab(post, browser=factories.browser(factories.user(is_staff=True))).tell("60 1")
    assert read(post) == (0, 0, 0)


@pytest.mark.parametrize("count_by", ["either", "script", "server"])
def test_a_dot_goes_out_when_the_text_is_read_where_the_site_says_so(
    settings: Settings, post: Post, category: Category, count_by: str
) -> None:
    settings.READTRACK = {"SCRIPT": {"reads": "read", "count_by": count_by}}
    user = factories.user()
    tab = Tab(post, browser=factories.browser(user))
    for state in ("", "30 0", "40 1"):
        tab.tell(state)
        assert reports.unread(user, [category]) == {category}
    assert "readtrack-dot" not in "".join(tab.tell("60 1").json()["elements"].values())
    assert reports.unread(user, [category]) == set()


def test_a_page_without_a_text_is_read_when_it_is_shown(
    settings: Settings, post: Post, category: Category
) -> None:
    settings.READTRACK = {"SCRIPT": {"reads": "read"}}
    user = factories.user()
    factories.browser(user).get(f"/posts/{post.pk}/")
    factories.browser(user).get(f"/categories/{category.pk}/")
    assert reports.unread(user, [category]) == set()


def test_the_median_is_that_of_engaged_views(post: Post) -> None:
    assert numbers_reports.reading(post).seconds == 0
    for number, seconds in enumerate([0, 3, 10, 61, 70, 75, 80, 85, 400, 9999, 2000]):
        visitor = Visitor(f"v{number}")
        tracker.record(factories.hit(f"site.post:{post.pk}", visitor=visitor))
        text = Reading(f"site.post:{post.pk}", 51, seconds, stage=ENGAGED)
        tracker.record(factories.hit(visitor=visitor, part_record=text))
    found = numbers_reports.reading(post)
    assert (found.views, found.engaged, found.reads) == (11, 11, 0)
    assert found.seconds == pytest.approx(75, abs=8)


def test_the_median_of_the_longest_is_the_last_bin(post: Post) -> None:
    visitor = Visitor("v")
    tracker.record(factories.hit(f"site.post:{post.pk}", visitor=visitor))
    tracker.record(
        factories.hit(
            visitor=visitor, part_record=Reading(f"site.post:{post.pk}", 51, 9999, stage=ENGAGED)
        )
    )
    assert numbers_reports.reading(post).seconds == 1500


def test_reads_survive_a_loss_of_redis(post: Post, redis: Redis) -> None:
    Tab(post).tell("60 1")
    flush()
    assert Breakdown.objects.get(kind="reading", field="reads").count == 1
    redis.flushdb()
    post.refresh_from_db()
    assert read(post) == (1, 1, 1)
    Tab(post).tell("60 1")
    assert read(post) == (2, 2, 2)
    flush(only_changed=True)
    assert Breakdown.objects.get(kind="reading", field="reads").count == 2
    assert read(post) == (2, 2, 2)


def test_a_read_that_comes_after_a_flush_is_found_by_the_next(post: Post, redis: Redis) -> None:
    tab = Tab(post)
    flush()
    tab.tell("60 1")
    flush(only_changed=True)
    assert Breakdown.objects.get(kind="reading", field="reads").count == 1


def test_a_reset_sets_reads_to_zero(post: Post) -> None:
    Tab(post).tell("60 1")
    flush()
    tracker.reset_views(post)
    assert read(post) == (0, 0, 0)


def readers(post: Post, *, number: int) -> None:
    for _ in range(number):
        visitor, subject = Visitor(f"v{next(numbers)}"), f"site.post:{post.pk}"
        tracker.record(factories.hit(subject, visitor=visitor))
        tracker.record(
            factories.hit(visitor=visitor, part_record=Reading(subject, 51, 60, stage=READS))
        )


def test_history_has_reads_by_the_hour_and_views_as_before(post: Post, redis: Redis) -> None:
    def days() -> list[int]:
        points = numbers_reports.series(
            post, count="reads", by="day", since=buckets.now() - 3 * buckets.DAY
        )
        return [point.views for point in points]

    assert days() == [0, 0, 0, 0]
    readers(post, number=3)
    assert days() == [0, 0, 0, 3]
    flush()
    row = History.objects.get(subject=f"reads:site.post:{post.pk}")
    History.objects.filter(pk=row.pk).update(hour=row.hour - 24)
    readers(post, number=2)
    assert days() == [0, 0, 3, 2]
    for _ in range(2):
        flush(only_changed=True)
        assert days() == [0, 0, 3, 2]
    redis.flushdb()
    flush()
    assert days() == [0, 0, 3, 2]
    assert History.objects.filter(subject=f"reads:site.post:{post.pk}").count() == 2
    assert sum(point.views for point in numbers_reports.series(post, hours=72)) == 5
    assert (
        numbers_reports.series(
            post, count="reads", since=buckets.now(), until=buckets.now() - buckets.HOUR
        )
        == []
    )
    tracker.reset_views(post)
    assert days() == [0, 0, 0, 0]


def test_a_flush_that_is_killed_before_the_counts_is_done_again(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = databases.upsert

    def upsert(model: Any, *args: Any, **kwargs: Any) -> None:
        if model is Breakdown:
            raise RuntimeError("killed here")
        keep(model, *args, **kwargs)

    readers(post, number=3)
    with monkeypatch.context() as patched:
        patched.setattr(databases, "upsert", upsert)
        with pytest.raises(RuntimeError, match="killed here"):
            flush()
    flush()
    points = numbers_reports.series(post, count="reads", hours=3)
    assert (
        sum(point.views for point in points)
        == Breakdown.objects.get(kind="reading", field="reads").count
        == 3
    )


def test_only_reads_that_rose_get_a_row(post: Post, settings: Settings) -> None:
    readers(post, number=1)
    flush()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    History.objects.all().delete()
    flush(only_changed=True)
    assert not History.objects.filter(subject__startswith="reads:").exists()
    settings.READTRACK = {"NUMBERS": {"history": False}}
    readers(post, number=1)
    flush(only_changed=True)
    assert not History.objects.filter(subject__startswith="reads:").exists()
    assert numbers_reports.reading(post).reads == 2


def test_reads_over_time_are_known_of_an_object_only() -> None:
    with pytest.raises(TypeError, match="of an object only"):
        numbers_reports.series(Post, count="reads")


@pytest.mark.parametrize("size", [1000, 1])
@pytest.mark.parametrize("days", [7, 2])
def test_the_most_read_are_another_list(
    size: int, days: int, monkeypatch: pytest.MonkeyPatch, category: Category
) -> None:
    posts = [factories.post(category=category) for _ in range(3)]
    for post, (views, reads) in zip(posts, [(9, 1), (2, 4), (5, 0)], strict=True):
        counts.view(*[post] * views)
        readers(post, number=reads)
    flush()
    readers(posts[0], number=1)
    flush(only_changed=True)
    tracker.refresh_trending()
    monkeypatch.setattr("readtrack.store.scripts.SLICE", size)
    found: Any = numbers_reports.most_viewed(Post, by="reads", days=days)
    assert [(post, post.in_period) for post in found] == [(posts[1], 4), (posts[0], 2)]
    assert numbers_reports.most_viewed(Post, 1, days=days)[0] == posts[0]
