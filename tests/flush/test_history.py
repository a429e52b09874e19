"""History has each view once, whatever Redis's clock and other flushes do."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from readtrack import buckets, reports, tracker
from readtrack.flush import run, totals
from readtrack.flush.run import flush
from readtrack.numbers.models import BreakdownHistory, History
from readtrack.numbers.reports import series
from readtrack.numbers.sql import history
from readtrack.numbers.sql.history import of_stage
from readtrack.subjects import subject_of
from tests.site.models import Article, Post
from tests.support import factories
from tests.support.rows import each_row

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def border(settings: Settings) -> datetime:
    """Returns when the present hour began."""
    settings.READTRACK = {"RATE": (0, 10)}
    return buckets.hour_start(buckets.hour_index(buckets.now()))


def flush_at(at: datetime, **options: Any) -> None:
    """Flushes as at that time of Redis's clock."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "server_time", lambda **_: int(at.timestamp() * 1_000_000))
        flush(**options)


def view(obj: Article | Post, number: int, at: datetime) -> None:
    for _ in range(number):
        assert tracker.record(factories.hit(subject_of(obj), at=at, is_seen=True)).counted


def hours_of(post: Post, border: datetime) -> dict[int, int]:
    """Returns the views of the post by hour, less the hour that begins at `border`."""
    points = series(post, since=border - 5 * HOUR, until=border + 50 * HOUR)
    return {number - 5: point.views for number, point in enumerate(points) if point.views}


def seen(post: Post) -> list[int]:
    """Returns the seen views of the post at the end of each hour."""
    rows = History.objects.filter(subject=of_stage("seen", subject_of(post))).order_by("hour")
    return [*rows.values_list("views", flat=True)]


def seen_by_hour(subject: str, *, until: int) -> dict[int, int]:
    """Returns the seen views of a post or a model in each hour before `until` that has some."""
    name = of_stage("seen", subject)
    by_hour = history.sums([name], since=1, until=until)[name].by_hour()
    return {hour: views for hour, views in by_hour.items() if views}


@each_row("hours_ahead", [1, 2, 30])
def test_after_the_clock_was_set_back_no_view_is_in_the_chart_twice(
    border: datetime, hours_ahead: int
) -> None:
    post = factories.post()
    ahead = border + hours_ahead * HOUR
    view(post, 5, border - HOUR)
    flush_at(border - HOUR)
    view(post, 10, ahead)
    flush_at(ahead)
    for minutes in (5, 6):
        view(post, 3, border)
        flush_at(border + minutes * MINUTE, only_changed=True)
    assert hours_of(post, border) == {-1: 5, 0: 16}
    assert seen(post) == [5, 21, 21]
    view(post, 4, ahead)
    flush_at(ahead + 5 * MINUTE, only_changed=True)
    assert hours_of(post, border) == {-1: 5, 0: 16, hours_ahead: 4}
    assert seen(post) == [5, 21, 25]


@pytest.mark.parametrize("hours_ahead", [1, 3, 30])
def test_after_the_clock_was_set_back_a_section_has_the_views_of_its_articles(
    border: datetime, hours_ahead: int
) -> None:
    article = Article.objects.create(category=factories.category())
    for hour in range(-2, hours_ahead + 1):
        view(article, 2, border + hour * HOUR)
        flush_at(border + hour * HOUR)
    for hour in range(2):
        view(article, 1, border + hour * HOUR)
        flush_at(border + hour * HOUR + MINUTE)
        sums = BreakdownHistory.objects.filter(kind="section:views").values_list("count", flat=True)
        assert sum(sums) == reports.views([article])[article]


@pytest.mark.parametrize("hours_ahead", [1, 3, 30])
def test_after_the_clock_was_set_back_a_model_has_the_seen_views_of_its_objects(
    border: datetime, hours_ahead: int
) -> None:
    post = factories.post()
    for hour in (-2, -1, hours_ahead - 1, hours_ahead):
        view(post, 2, border + hour * HOUR)
        flush_at(border + hour * HOUR)
    for hour in range(2):
        view(post, 5, border + hour * HOUR)
        flush_at(border + hour * HOUR + MINUTE)
        until = buckets.hour_index(border) + hour + 1
        of_post = seen_by_hour(subject_of(post), until=until)
        # Before: without the hours since the clock was set back.
        assert seen_by_hour("site.post", until=until) == of_post


@pytest.mark.parametrize("only_changed", [True, False])
def test_a_flush_that_another_one_of_the_next_hour_overtakes_stores_no_view_twice(
    border: datetime, monkeypatch: pytest.MonkeyPatch, *, only_changed: bool
) -> None:
    post = factories.post()
    flush_at(border - 2 * MINUTE)
    view(post, 10, border - MINUTE)
    written = totals.write_chunk

    def overtake(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(run, "write_chunk", written)
        view(post, 1, border)
        flush_at(border + MINUTE, only_changed=True)
        view(post, 2, border)
        return written(*args, **kwargs)

    monkeypatch.setattr(run, "write_chunk", overtake)
    flush_at(border - MINUTE, only_changed=only_changed)
    flush_at(border + 2 * MINUTE, only_changed=True)
    assert hours_of(post, border) == {-1: 13}
    view(post, 3, border + HOUR)
    flush_at(border + HOUR, only_changed=True)
    assert hours_of(post, border) == {-1: 13, 1: 3}
