"""Views that were seen, from the page's script to SQL: stages of views beside reads."""

import re
from typing import Any

import pytest
from django.core import signing
from django.http import HttpResponse
from django.template import engines
from django.test import Client
from django.urls import path
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.models import Breakdown, History
from readtrack.script import keys as script_keys
from readtrack.script.shared import shared_page
from readtrack.sql import archive
from readtrack.store import keys
from tests.site.models import Post
from tests.site.urls import urlpatterns as site_urls
from tests.support import buffered, factories
from tests.support.wire import Wire

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
    pytest.mark.usefixtures("_both_ways"),
]

OWN = {"Sec-Fetch-Site": "same-origin"}
SOURCE = "{% load readtrack %}<p>text</p>{% readtrack_script %}"
WITHOUT_SCRIPT = "{% load readtrack %}{% view_count post %}"


def page(request: Any, pk: int, source: str = SOURCE) -> HttpResponse:
    post = Post.objects.get(pk=pk)
    request.readtrack.view(post)
    return HttpResponse(engines["django"].from_string(source).render({"post": post}, request))


urlpatterns = [
    *site_urls,
    path("seen/<int:pk>/", page),
    path("shared/<int:pk>/", shared_page(page)),
    path("bare/<int:pk>/", page, {"source": WITHOUT_SCRIPT}),
]


class Tab:
    """A page in a browser."""

    def __init__(self, post: Post, *, browser: Client | None = None, kind: str = "seen") -> None:
        self.browser = browser or factories.browser()
        html = self.browser.get(f"/{kind}/{post.pk}/").text
        [self.token] = re.findall(r'data-page="([^"]*)"', html)

    def come_to_life(self) -> Any:
        """Does what the script does, up to the second report if the answer asks for one."""
        answer = self.report()
        return self.report() if answer.json()["again"] else answer

    def report(self) -> Any:
        body = f"{self.token}\n\n\n100"
        return self.browser.post("/readtrack/page.js", body, "text/plain", headers=OWN)


def seen(post: Post) -> tuple[int, int]:
    """Returns the post's views, and how many of them were seen."""
    found = numbers_reports.reading(post)
    return found.views, found.seen


@pytest.mark.parametrize("kind", ["seen", "shared"])
@pytest.mark.parametrize("count_by", ["either", "script", "server"])
@pytest.mark.parametrize("anonymous", ["cookie", "hash"])
def test_a_page_that_comes_to_life_is_seen_once(
    settings: Settings, post: Post, kind: str, count_by: str, anonymous: str
) -> None:
    settings.READTRACK = {"SCRIPT": {"count_by": count_by}, "ANONYMOUS": anonymous}
    tab = Tab(post, kind=kind)
    for _ in range(3):
        tab.come_to_life()
    Tab(post, kind=kind, browser=tab.browser).come_to_life()
    assert seen(post) == (1, 1)


@pytest.mark.parametrize("count_by", ["either", "server"])
def test_a_page_whose_script_never_runs_is_viewed_and_not_seen(
    settings: Settings, post: Post, count_by: str
) -> None:
    settings.READTRACK = {"SCRIPT": {"count_by": count_by}}
    Tab(post)
    assert seen(post) == (1, 0)
    factories.browser().get(f"/bare/{post.pk}/")
    assert seen(post)[1] == 0


@pytest.mark.parametrize("count_by", ["either", "script", "server"])
def test_a_page_is_seen_where_its_view_waits_in_the_buffer(
    settings: Settings, post: Post, count_by: str
) -> None:
    settings.READTRACK = {"BUFFER": {"seconds": 3600}, "SCRIPT": {"count_by": count_by}}
    tab = Tab(post)
    tab.come_to_life()
    assert seen(post) == (0, 0)
    buffered.send()
    assert seen(post) == (1, 1)


def test_users_are_seen_and_robots_are_not(post: Post) -> None:
    Tab(post, browser=factories.browser(factories.user())).come_to_life()
    assert seen(post) == (1, 1)
    tab = Tab(post)
    body = f"{tab.token}\n\n\n100"
    agent = {"User-Agent": "Googlebot/2.1"}
    tab.browser.post("/readtrack/page.js", body, "text/plain", headers=OWN | agent)
    assert seen(post)[1] == 1


def test_a_report_takes_no_trip_more_because_it_is_seen(post: Post, wire: Wire) -> None:
    tab = Tab(post)
    tab.report()
    wire.trips = 0
    tab.report()
    assert wire.trips == 1


def test_a_site_without_the_script_has_no_row_of_seen_views(post: Post) -> None:
    factories.browser().get(f"/bare/{post.pk}/")
    flush()
    assert not Breakdown.objects.exists()
    assert not History.objects.filter(subject__startswith="seen:").exists()


def test_seen_views_survive_a_loss_of_redis_and_have_history(post: Post, redis: Redis) -> None:
    Tab(post).come_to_life()
    flush()
    assert Breakdown.objects.get(kind="reading", field="seen").count == 1
    redis.flushdb()
    post.refresh_from_db()
    assert seen(post) == (1, 1)
    Tab(post).come_to_life()
    flush(only_changed=True)
    assert Breakdown.objects.get(kind="reading", field="seen").count == 2
    points = numbers_reports.series(post, count="seen", hours=3)
    assert sum(point.views for point in points) == 2
    row = History.objects.filter(subject=f"seen:site.post:{post.pk}").latest("hour")
    assert row.views == 2
    flush()
    assert History.objects.filter(subject="seen:site.post").exists()
    assert numbers_reports.series(post, count="engaged", since=buckets.now())[0].views == 0


def test_a_reset_sets_seen_views_to_zero_and_an_open_page_counts_no_more_than_its_view(
    post: Post, redis: Redis
) -> None:
    tab = Tab(post)
    flush()
    tracker.reset_views(post)
    tab.come_to_life()
    assert seen(post) == (0, 0)
    assert not redis.exists(script_keys.reading(f"site.post:{post.pk}"))


def test_seen_views_go_with_a_renamed_object_and_with_a_deleted_one(post: Post) -> None:
    Tab(post).come_to_life()
    flush()
    old = post.pk
    Post.objects.filter(pk=old).update(id=999_999)
    tracker.rename(Post.objects.get(pk=999_999), before=old)
    names = History.objects.filter(subject__startswith="seen:site.post:")
    assert [*names.values_list("subject", flat=True)] == ["seen:site.post:999999"]
    archive.delete(["site.post:999999"])
    assert not names.exists()


def test_whoever_signs_a_token_of_ones_own_is_not_seen(post: Post) -> None:
    tab = Tab(post)
    tab.token = signing.dumps([1, 2, 3], salt=keys.salt("page"))
    assert tab.report().status_code == 403
    assert seen(post) == (1, 0)
