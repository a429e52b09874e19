"""After a pause of the flusher SQL has what a journal of the views has, in the hours in which they
came.
"""

from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.digest.contents import contents_of
from readtrack.digest.periods import DigestPeriod
from readtrack.flush import run, totals
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.imports import ledger, writing
from readtrack.imports.ledger import Batch
from readtrack.imports.models import Import
from readtrack.models import Archive, FlushRun
from readtrack.numbers.flush import late_views
from readtrack.numbers.flush.steps import NumbersSteps
from readtrack.numbers.models import BreakdownHistory, DayBreakdown, DayVisitors, History
from readtrack.numbers.sql import sql_view
from readtrack.numbers.sql.history import of_reads, of_stage
from readtrack.sql import databases
from readtrack.store import keys
from readtrack.subjects import subject_of
from tests.site.models import Article
from tests.support import factories
from tests.support.counts import stored
from tests.support.counts import view_times as view

pytestmark = pytest.mark.django_db(transaction=True)

LABEL = "site.article"
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def referrer(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer"]}, "RATE": (0, 10)}


def flush_at(at: datetime, **options: Any) -> FlushRun:
    """Flushes as at that time of Redis's clock."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "server_time", lambda **_: int(at.timestamp() * 1_000_000))
        return flush(**options)


def expire_buckets(redis: Redis, *, at: datetime) -> None:
    """Removes the minute buckets that would have expired by that time."""
    kept = {*buckets.minute_buckets(keys.trending_bucket.ttl // keys.MINUTE, until=at)}
    for key in redis.scan_iter("trending:bucket:*"):
        if key.rpartition(":")[2] not in kept:
            redis.delete(key)


class Journal:
    """Every view of some articles, and what SQL should have of them."""

    def __init__(self) -> None:
        self.views: Counter[tuple[Article, int]] = Counter()  # by hour (since 1970)
        self.seen: Counter[Article] = Counter()
        self.referrers: Counter[tuple[Article, str]] = Counter()
        self.visitors: defaultdict[tuple[Any, date], set[str]] = defaultdict(set)

    def view(self, article: Article, visitor: str, at: datetime, *, is_seen: bool) -> None:
        value = f"{visitor[-1]}.example"
        hit = factories.hit(
            subject_of(article),
            visitor=Visitor(visitor),
            at=at,
            is_seen=is_seen,
            dimensions=(("referrer", value),),
        )
        assert tracker.record(hit).counted
        hour = buckets.hour_index(at)
        self.views[article, hour] += 1
        self.seen[article] += is_seen
        self.referrers[article, value] += 1
        for name in (
            subject_of(article),
            LABEL,
            f"{LABEL}:{{section}}site.category:{article.category_id}",
            f"{LABEL}:{{author}}{article.author_id}",
        ):
            self.visitors[name, buckets.local_day(hour)].add(visitor)

    def hours_of(self, *articles: Article) -> Counter[int]:
        hours: Counter[int] = Counter()
        for (article, hour), number in self.views.items():
            hours[hour] += number if article in articles else 0
        return +hours

    def days_of(self, *articles: Article) -> Counter[date]:
        days: Counter[date] = Counter()
        for hour, number in self.hours_of(*articles).items():
            days[buckets.local_day(hour)] += number
        return days


def hours_of(*names: str) -> Counter[int]:
    """Returns what history has of these names by hour."""
    gained: Counter[int] = Counter()
    for name in names:
        before = 0
        rows = History.objects.filter(subject=name).order_by("hour")
        for hour, views in rows.values_list("hour", "views"):
            assert views >= before
            gained[hour] += views - before
            before = views
    return +gained


def check(journal: Journal, articles: list[Article]) -> None:
    """Compares each table with the journal."""
    for article in articles:
        subject = subject_of(article)
        assert hours_of(subject) == journal.hours_of(article)
        seen = hours_of(of_stage("seen", subject))
        assert (seen.total(), +(seen - journal.hours_of(article))) == (journal.seen[article], {})
        gains = DayBreakdown.objects.filter(subject=subject).values_list("day", "field", "count")
        of_days: Counter[date] = Counter()
        of_values: Counter[tuple[Article, str]] = Counter()
        for day, value, number in gains:
            of_days[day] += number
            of_values[article, value] += number
        assert of_days == journal.days_of(article)
        assert of_values == {key: n for key, n in journal.referrers.items() if key[0] == article}
    assert hours_of(*(f"{LABEL}{tag}" for tag in keys.tags())) == journal.hours_of(*articles)
    assert hours_of(of_reads(LABEL)) == {}
    for group in ("section", "author"):
        found: defaultdict[str, Counter[int]] = defaultdict(Counter)
        rows = BreakdownHistory.objects.filter(subject=LABEL, kind=f"{group}:views")
        for name, hour, number in rows.values_list("field", "hour", "count"):
            found[name][hour] += number
        for name, of_group in grouped(articles, group).items():
            assert found[name] == journal.hours_of(*of_group)
    people = DayVisitors.objects.filter(length=1).values_list("subject", "day", "visitors")
    assert {(name, day): number for name, day, number in people} == {
        name: len(visitors) for name, visitors in journal.visitors.items()
    }
    for table, row in archived().items():
        assert row == sum(1 for key in journal.views.elements() if subject_of(key[0]) == table)


def grouped(articles: list[Article], group: str) -> dict[str, list[Article]]:
    groups: defaultdict[str, list[Article]] = defaultdict(list)
    for article in articles:
        name = f"site.category:{article.category_id}"
        groups[str(article.author_id) if group == "author" else name].append(article)
    return groups


def archived() -> dict[str, int]:
    return dict(Archive.objects.values_list("subject", "visitors"))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("hours", [3, 49])
def test_everything_that_was_viewed_in_a_pause_is_stored_as_in_a_journal(
    redis: Redis, seed: int, hours: int
) -> None:
    random = Random(seed)
    now = buckets.now()
    begin = (now - hours * HOUR).replace(minute=30)
    categories = [factories.category() for _ in range(2)]
    authors = [factories.user() for _ in range(2)]
    articles = [
        Article.objects.create(category=categories[number % 2], author=authors[number // 2])
        for number in range(4)
    ]
    journal = Journal()
    visitors = {article: iter(f"visitor {n}" for n in range(10_000)) for article in articles}

    def come(article: Article, at: datetime) -> None:
        is_seen = article == articles[0] or random.random() < 0.5
        journal.view(article, next(visitors[article]), at, is_seen=is_seen)

    for article in articles[:3]:
        come(article, begin - timedelta(minutes=5))
    flush_at(begin)
    come(articles[0], begin + timedelta(minutes=5))  # in the hour that has a row already
    for _ in range(40):
        come(random.choice(articles[1:]), begin + random.random() * (now - begin))
    come(articles[0], begin + HOUR)  # nobody comes to it again
    expire_buckets(redis, at=now)
    assert flush(only_changed=True).kind != FlushRun.Kind.CHANGED
    check(journal, articles)
    check_daily_view(journal, articles)
    check_digests(journal, articles)
    redis.flushdb()
    flush()
    check(journal, articles)
    assert {subject_of(article) for article in articles} == archived().keys()


def check_daily_view(journal: Journal, articles: list[Article]) -> None:
    connection = databases.of(History)
    sql_view.create_view(connection)
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT primary_key, day, views, visitors FROM {sql_view.VIEW}")
            rows = {(int(pk), day): (views, people) for pk, day, views, people in cursor.fetchall()}
    finally:
        sql_view.drop_view(connection)
    expected = {}
    for article in articles:
        for day, views in journal.days_of(article).items():
            visitors = journal.visitors[subject_of(article), day]
            expected[article.pk, day] = (views, len(visitors))
    assert rows == expected


def check_digests(journal: Journal, articles: list[Article]) -> None:
    for author, own in grouped(articles, "author").items():
        for day, views in journal.days_of(*own).items():
            found = contents_of(DigestPeriod(day, day), author=author)
            visitors = journal.visitors[f"{LABEL}:{{author}}{author}", day]
            assert (found.views.now, found.visitors.now) == (views, len(visitors))
            listed = {story.obj: story.number for story in found.most_viewed}
            expected = {each: journal.days_of(each)[day] for each in own}
            assert listed == {each: number for each, number in expected.items() if number}


def test_a_view_that_a_killed_flush_left_out_is_stored_after_a_pause(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its total is in SQL, its visitors, its values and its place in history may not be."""
    now, article = buckets.now(), Article.objects.create()
    flush_at(now - 5 * HOUR)
    journal = Journal()
    journal.view(article, "visitor 1", now - 4 * HOUR, is_seen=True)

    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patched:
        patched.setattr(NumbersSteps, "stored", fail)
        with pytest.raises(RuntimeError, match="killed here"):
            flush_at(now - 4 * HOUR, only_changed=True)
    expire_buckets(redis, at=now)
    flush(only_changed=True)
    redis.flushdb()
    flush()
    day = buckets.local_day(buckets.hour_index(now - 4 * HOUR))
    assert DayVisitors.objects.get(subject=subject_of(article), day=day).visitors == 1
    assert archived() == {subject_of(article): 1}


def test_what_was_read_in_a_pause_without_a_view_is_stored(redis: Redis) -> None:
    now, post = buckets.now(), factories.post()
    view(post, at=now - 3 * HOUR)
    flush_at(now - 3 * HOUR)
    redis.hset(f"reading:{subject_of(post)}", mapping={"seen": 1, "engaged": 1})
    expire_buckets(redis, at=now)
    flush(only_changed=True)
    assert hours_of(of_stage("seen", subject_of(post))).total() == 1


def test_redis_keeps_an_hour_for_a_pause_until_a_full_flush_has_stored_it(redis: Redis) -> None:
    now, post = buckets.now(), factories.post()
    earlier = factories.post()
    flush()
    for age in (26, 24, 1, 0):
        view(post, at=now - age * HOUR)
    view(earlier, at=now - HOUR)
    hours, hours_of_earlier = keys.hours(subject_of(post)), keys.hours(subject_of(earlier))
    for _ in range(2):
        assert redis.hlen(hours) == 4
        assert redis.ttl(hours) > 2 * keys.DAY < redis.ttl(hours_of_earlier)
        flush(only_changed=True)
    flush()
    kept = [buckets.hour_bucket(now - age * HOUR) for age in (24, 1, 0)]
    assert sorted(redis.hkeys(hours)) == kept
    assert redis.ttl(hours) > 2 * keys.DAY
    assert redis.ttl(hours_of_earlier) <= keys.DAY


def test_redis_keeps_no_more_hours_of_a_post_than_a_pause_needs(redis: Redis) -> None:
    now, post = buckets.now(), factories.post()
    for age in range(100, -1, -1):
        view(post, at=now - age * HOUR)
    kept = [buckets.hour_bucket(now - age * HOUR) for age in range(72, -1, -1)]
    assert sorted(redis.hkeys(keys.hours(subject_of(post)))) == kept


@pytest.mark.parametrize("cause", ["an import made the hour", "a reset took the sketch"])
def test_the_visitors_of_a_day_that_begin_within_an_hour_expire_too(
    redis: Redis, cause: str
) -> None:
    now, post = buckets.now(), factories.post()
    sketch = keys.day_visitors(buckets.local_day_bucket(now), subject_of(post))
    if cause == "an import made the hour":
        redis.hset(keys.hours(subject_of(post)), buckets.hour_bucket(now), 5)
    else:
        view(post, at=now)
        redis.delete(sketch)
    view(post, at=now)
    assert redis.ttl(sketch) == -1
    flush(only_changed=True)
    assert keys.day_visitors.ttl - 60 < redis.ttl(sketch) <= keys.day_visitors.ttl


def test_hours_that_redis_has_lost_are_stored_under_the_present_one(redis: Redis) -> None:
    now, post = buckets.now(), factories.post()
    flush_at(now - 30 * HOUR)
    view(post, 2, at=now - 20 * HOUR)
    view(post, 3, at=now - 10 * HOUR)
    redis.hdel(keys.hours(subject_of(post)), buckets.hour_bucket(now - 20 * HOUR))
    expire_buckets(redis, at=now)
    last = flush(only_changed=True)
    hour = buckets.hour_of(last.flushed_until)
    assert hours_of(subject_of(post)) == {hour - 10: 3, hour: 2}
    assert stored(post) == 5


def test_the_batch_of_an_import_that_a_late_flush_meets_is_in_history_once(redis: Redis) -> None:
    now, post = buckets.now(), factories.post()
    view(post, 2, at=now - 3 * HOUR)
    flush_at(now - 3 * HOUR)
    record = Import.objects.create(source="log")
    batch = Batch()
    for number, age in enumerate((2, 30, 200)):
        batch.add(subject_of(post), visitor=str(number), at=now - age * HOUR)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing, "write_subjects", _die)
        with pytest.raises(RuntimeError, match="killed here"):
            ledger.add(record, batch, position=100)
    expire_buckets(redis, at=now)
    flush(only_changed=True)
    record.refresh_from_db()
    ledger.resume(record, digest=lambda position: "")
    flush()
    present = buckets.hour_index(now)
    assert hours_of(subject_of(post)) == {
        present - age: number for age, number in {2: 1, 3: 2, 30: 1, 200: 1}.items()
    }
    assert stored(post) == 5


def _die(*args: Any) -> None:
    raise RuntimeError("killed here")


def test_what_a_late_flush_could_not_write_is_written_by_the_next_one(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, post = buckets.now(), factories.post()
    flush_at(now - 3 * HOUR)
    view(post, 2, at=now - 2 * HOUR)
    expire_buckets(redis, at=now)

    def refuse(*args: Any, **options: Any) -> Any:
        raise ValueError("refused here")

    with monkeypatch.context() as patched:
        patched.setattr(totals, "_write_rows", refuse)
        assert flush(only_changed=True).failed
    assert flush(only_changed=True).kind == FlushRun.Kind.CHANGED
    assert stored(post) == 2
    assert hours_of(subject_of(post)).total() == 2


@pytest.mark.parametrize("seed", range(20))
def test_numbers_that_are_divided_among_hours_keep_their_sums(seed: int) -> None:
    random = Random(seed)
    views = {hour: random.randrange(1, 20) for hour in range(random.randrange(1, 60))}
    number = random.randrange(sum(views.values()) + 1)
    parts = late_views.divided(number, views)
    assert sum(parts.values()) == number
    assert all(parts[hour] <= views[hour] for hour in parts)
    fields = {f"value {each}": random.randrange(1, 30) for each in range(random.randrange(1, 50))}
    by_hour = late_views.divided_by_field(fields, views)
    assert sum(by_hour.values(), Counter()) == fields
    if sum(fields.values()) <= sum(views.values()):
        assert all(part.total() <= views[hour] for hour, part in by_hour.items())
