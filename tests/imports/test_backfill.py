"""Charts of the past: an import fills them, and no view is in them twice."""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.flush.run import flush
from readtrack.flush.settling import settle
from readtrack.imports import ledger
from readtrack.imports.ledger import Batch, ImportRefusedError
from readtrack.imports.models import Import
from readtrack.imports.weblog import Importer
from readtrack.numbers.models import History
from readtrack.numbers.reports import series
from readtrack.numbers.sql import history
from readtrack.sql.epochs import SqlEpoch
from readtrack.sql.faults import Faults
from readtrack.sql.row_counts import RowCounts
from readtrack.store import keys, scripts
from tests.imports import weblogs
from tests.imports.weblogs import START, line
from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def post(database: str) -> Post:
    return factories.post(pk=1)


def batch(*times: datetime) -> Batch:
    found = Batch()
    for number, at in enumerate(times):
        found.add("site.post:1", visitor=str(number), at=at)
    return found


def add(*times: datetime) -> None:
    ledger.add(
        Import.objects.create(source=f"test{Import.objects.count()}"), batch(*times), position=100
    )


def begin(added: Batch, *, source: str = "test") -> Import:
    """Imports a part up to the point where Redis has it and SQL does not know of it."""
    record, part = Import.objects.create(source=source), ledger.part_of(added, at=buckets.now())
    assert all(scripts.run_all(*ledger.intend(source, added.views, before=0, after=100)))
    Import.objects.filter(pk=record.pk).update(intended=100, part=part.text)
    calls = ledger.apply(source, part, before=0, after=100)
    while ledger.UNSETTLED in scripts.run_all(*calls):
        settle(SqlEpoch(), Faults())
    return Import.objects.get(source=source)


def view(at: datetime | None = None) -> None:
    tracker.record(factories.hit("site.post:1", at=at or buckets.now()))


def rows(subject: str) -> dict[datetime, int]:
    found = History.objects.filter(subject=subject).order_by("hour").values_list("hour", "views")
    return {buckets.hour_start(hour): views for hour, views in found}


def keep(subject: str, views: dict[datetime, int]) -> None:
    for at, count in views.items():
        history.store({subject: RowCounts(count, 7)}, hour=buckets.hour_index(at))


def shown(of: Any, *, since: datetime, by: Any = "hour") -> Counter[datetime]:
    """Returns the views of a chart, without its zeros."""
    points = series(of, since=since, until=buckets.now() + HOUR, by=by)
    return +Counter({point.start: point.views for point in points})


def test_days_of_a_log_are_charted_and_live_views_follow(post: Post, tmp_path: Path) -> None:
    days = [START - DAY * 3, START - DAY, START]
    lines = [
        line(f"/posts/{pk}/", start=day, after=pk * 7200, address=f"192.0.2.{pk}")
        for day in days
        for pk in (1, 2)
    ]
    other = factories.post(pk=2)
    path = weblogs.write(tmp_path / "access.log", lines)
    for _ in range(2):
        assert Importer().run([path]).counted in {6, 0}
    view()
    flush(only_changed=True)
    flush(only_changed=True)
    midnights = [day.replace(hour=0) for day in days]
    today = buckets.now().replace(hour=0, minute=0, second=0, microsecond=0)
    since = START - DAY * 9
    assert shown(post, since=since, by="day") == {**dict.fromkeys(midnights, 1), today: 1}
    assert shown(other, since=since, by="day") == dict.fromkeys(midnights, 1)
    for of in (Post, None):
        assert shown(of, since=since, by="day") == {**dict.fromkeys(midnights, 2), today: 1}


def test_rows_from_before_the_import_rise_by_what_came_before_them(post: Post) -> None:
    live = {START - HOUR: 10, START + HOUR: 20, START + 3 * HOUR: 30}
    Post.objects.update(view_count=30)
    own = f"site.post{keys.tag('site.post:1')}"
    for subject in ("site.post:1", own):
        keep(subject, live)
    add(START, START, START + HOUR, START + 5 * HOUR)
    for subject in ("site.post:1", own):
        assert [*rows(subject).values()] == [10, 12, 23, 33, 34]
    assert set(History.objects.values_list("visitors", flat=True)) == {7}
    add(START - 2 * HOUR)
    assert [*rows("site.post:1").values()] == [1, 11, 13, 24, 34, 35]


def test_rows_that_a_flush_writes_before_the_part_is_confirmed_hold_it_already(post: Post) -> None:
    now = buckets.now()
    view(now)
    flush(only_changed=True)
    record = begin(batch(START, START, now))
    for _ in range(3):
        view(now)
        flush(only_changed=True)
    ledger.resume(record)
    ledger.resume(record)
    flush(only_changed=True)
    hour = now.replace(minute=0, second=0, microsecond=0)
    for of in (post, Post, None):
        found = shown(of, since=START)
        assert found.pop(START) == 2
        assert sum(found.values()) == 5
        assert min(found) == hour
    assert ledger.resume(Import.objects.get()) == (100, 0)


@pytest.mark.parametrize("sizes", [(1, 9), (9, 1)])
@pytest.mark.parametrize("is_reversed", [True, False])
def test_no_row_of_history_misses_one_of_two_imports_at_once(
    post: Post, sizes: tuple[int, int], *, is_reversed: bool
) -> None:
    flush()  # as each import begins
    hours = [START + HOUR, START]
    records = [
        begin(batch(*[hour] * size), source=f"{hour}")
        for hour, size in zip(hours, sizes, strict=True)
    ]
    for record in reversed(records) if is_reversed else records:
        ledger.resume(record)
    assert Import.objects.filter(position=100, part="").count() == 2
    expected = dict(zip(hours, sizes, strict=True))
    for of in (post, Post, None):
        assert shown(of, since=START) == expected
    add(START)
    assert shown(post, since=START) == {**expected, START: expected[START] + 1}


def test_an_import_that_was_killed_keeps_its_hours_while_others_go_on(post: Post) -> None:
    factories.post(pk=2)
    flush()  # as each import begins
    both = batch(START)
    both.add("site.post:2", visitor="x", at=START)
    killed = begin(both, source="killed")
    add(*[START + HOUR] * 9)
    add(*[START + 2 * HOUR] * 20)
    killed.refresh_from_db()
    assert ledger.part_in(killed).filled == ["site.post:1"]
    assert shown(post, since=START) == {START: 1, START + HOUR: 9, START + 2 * HOUR: 20}
    ledger.resume(killed)
    assert shown(post, since=START) == {START: 1, START + HOUR: 9, START + 2 * HOUR: 20}
    assert shown(Post, since=START) == {START: 2, START + HOUR: 9, START + 2 * HOUR: 20}


@pytest.mark.parametrize("by_another", [True, False])
def test_views_from_before_a_reset_stay_out_of_the_chart(post: Post, by_another: bool) -> None:
    flush()  # as each import begins
    killed = begin(batch(*[START] * 5), source="killed")
    tracker.reset_views(post)
    later: dict[datetime, int] = {}
    if by_another:
        add(*[START + HOUR] * 3)
        later = {START + HOUR: 3}
        killed.refresh_from_db()
        assert ledger.part_in(killed).filled == ["site.post:1"]
        assert shown(post, since=START) == later
    ledger.resume(killed)
    assert shown(post, since=START) == later
    # The model keeps what was counted before the reset.
    assert shown(Post, since=START)[START] == 5
    post.refresh_from_db()
    assert post.view_count == sum(later.values())


@pytest.mark.parametrize("is_seen", [True, False])
def test_views_of_the_running_hours_are_counted_once_beside_live_ones(
    post: Post, *, is_seen: bool
) -> None:
    now = buckets.now()
    hours = [now - back * HOUR for back in (60, 40, 4, 3, 2, 1, 0)]
    if is_seen:
        view(now)
        flush(only_changed=True)
    add(*hours, *hours)
    flush(only_changed=True)
    view(now)
    flush(only_changed=True)
    add(*hours)
    flush(only_changed=True)
    flush(only_changed=True)
    expected = Counter(hour.replace(minute=0, second=0, microsecond=0) for hour in hours * 3)
    expected[now.replace(minute=0, second=0, microsecond=0)] += 1 + is_seen
    for of in (post, Post, None):
        assert shown(of, since=now - 70 * HOUR) == expected


@pytest.mark.usefixtures("post")
def test_without_history_none_is_written(redis: Redis) -> None:
    with override_settings(READTRACK={"NUMBERS": {"history": False}}):
        add(START, buckets.now())
    assert not History.objects.exists()
    assert redis.keys("trending:*") == []


@pytest.mark.usefixtures("post")
def test_a_subject_may_have_any_number_of_hours_and_any_times() -> None:
    count = 201
    keep("site.post:1", {START + 5 * count * HOUR: 50})
    Post.objects.update(view_count=50)
    add(*(START + number * HOUR for number in range(count)))
    assert [*rows("site.post:1").values()] == [*range(1, count + 1), 50 + count]
    add(START.replace(year=1066), START.replace(year=2999))
    present = buckets.now().replace(minute=0, second=0, microsecond=0)
    assert next(iter(rows("site.post:1"))) == buckets.hour_start(0)
    assert present - HOUR <= [*rows("site.post:1")][-1] <= present


@pytest.mark.usefixtures("post")
def test_the_position_moves_with_the_history_or_not_at_all() -> None:
    record = begin(batch(START))
    part, record.part = record.part, "{"
    with pytest.raises(ValueError, match="property name"):
        ledger.resume(record)
    assert (Import.objects.get().position, rows("site.post:1")) == (0, {})
    record.part = part
    assert ledger.resume(record) == (100, 0)
    assert sum(shown(Post, since=START).values()) == 1


@pytest.mark.usefixtures("post")
def test_a_database_restored_from_before_the_part_has_its_views_in_the_present_hour() -> None:
    record = begin(batch(START))
    Import.objects.update(intended=0, part="")
    record.refresh_from_db()
    assert ledger.resume(record) == (100, 0)
    present = buckets.now().replace(minute=0, second=0, microsecond=0)
    assert rows("site.post:1") in ({present: 1}, {present - HOUR: 1})
    assert Post.objects.get().view_count == 1


@pytest.mark.usefixtures("post")
def test_redis_lost_before_the_part_is_confirmed_is_no_success(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(subjects: object) -> None:
        redis.flushdb()

    monkeypatch.setattr("readtrack.imports.writing.write_subjects", lose)
    with pytest.raises(ImportRefusedError):
        add(START)
    assert rows("site.post:1") == {}
    assert ledger.resume(Import.objects.get())[1] == 100
