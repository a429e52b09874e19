"""What is usual at an age is what a plain computation makes of all views."""

import random
from collections import Counter
from datetime import date, datetime, timedelta, timezone
from functools import cache
from statistics import mean
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import get_default_timezone
from pytest_django import Settings

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers.models import History, Note, Usual
from readtrack.numbers.published import published_field
from readtrack.numbers.sql import peers, thinning, usual, usual_renewal, usual_week
from readtrack.numbers.sql.usual import (
    AGES,
    HOURS_OF_WEEK,
    NOTHING,
    START,
    Band,
    Bands,
    age_before,
    at_age,
    band_of,
)
from readtrack.sql import databases
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.site.models import Article, Category
from tests.support import counts, factories
from tests.support.depth import examples

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

AT = datetime(2026, 11, 20, 9, 40, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


class Story(NamedTuple):
    """An article, its views by hour (since 1970), and whether it has a row of history at all."""

    article: Article
    views: Counter[int]

    def absolute(self, hour: int) -> int:
        """Returns its views before that hour."""
        return sum(views for viewed, views in self.views.items() if viewed < hour)


def store(name: str, by_hour: Counter[int]) -> None:
    """Stores the history of a subject."""
    History.objects.bulk_create(history(name, by_hour))


def history(name: str, by_hour: Counter[int]) -> list[History]:
    """Returns the rows of the history of a subject."""
    total = 0
    rows = []
    for hour in sorted(by_hour):
        total += by_hour[hour]
        rows.append(History(subject=name, hour=hour, views=total, visitors=0))
    return rows


def newsroom(chance: random.Random, *, days: int, number: int) -> list[Story]:
    """Returns stories of the last days with random views, some of them before their publication.

    Some were published before history began, some are drafts, and nobody has viewed some.
    """
    for model in (History, Usual, Article, Category):
        model.objects.all().delete()
    sections = [factories.category() for _ in range(3)]
    stories = []
    of_model: Counter[int] = Counter()
    for _ in range(number):
        published = AT - timedelta(seconds=chance.randrange(-3 * 86_400, days * 86_400))
        article = Article(
            category=chance.choice([*sections, None]),
            published_at=chance.choice([published] * 9 + [None]),
        )
        first = buckets.hour_index(published)
        last = buckets.hour_index(AT)
        hours = [first + int(chance.expovariate(1 / 40)) - 2 for _ in range(30)]
        hours = chance.choice([[], *[hours] * 9])
        views = Counter({hour: chance.randrange(1, 50) for hour in hours if hour <= last})
        stories.append(Story(article, views))
        of_model += views
    Article.objects.bulk_create(story.article for story in stories)
    rows = history("site.article", of_model)
    for story in stories:
        rows += history(subject_of(story.article), story.views)
    History.objects.bulk_create(rows)
    return stories


def expected(stories: list[Story], section: Category | None, *, kept_since: int) -> Bands:
    """Returns the bands of all stories, or of those in the section, by a plain computation."""
    # Of the first day only its last hour may be left.
    first_hour = min(History.objects.filter(subject="site.article").values_list("hour", flat=True))
    bands = {}
    for age in AGES:
        in_question = []
        for story in stories:
            published = story.article.published_at
            is_of_kind = section is None or story.article.category == section
            if published is None or not is_of_kind or published < buckets.hour_start(first_hour):
                continue
            if published + age * HOUR + timedelta(minutes=30) <= AT:
                in_question.append(story)
        in_question.sort(key=lambda story: (story.article.published_at, story.article.pk))
        if len(in_question) < peers.FEWEST:
            continue
        last = in_question[-peers.PEERS :]
        numbers = numbers_at(last, age, kept_since=kept_since)
        if len(numbers) >= peers.FEWEST:
            bands[age] = band_by_hand(numbers)
        # What the same stories had at the age before.
        numbers = numbers_at(last, age_before(age), kept_since=kept_since)
        if age_before(age) and len(numbers) >= peers.FEWEST:
            bands[START + age] = band_by_hand(numbers)
    return bands


def numbers_at(stories: list[Story], age: int, *, kept_since: int) -> list[float]:
    """Returns the views of each story from its publication until that age, as far as they are known."""
    numbers = []
    for story in stories:
        published = story.article.published_at
        assert published is not None
        hour = buckets.hour_index(published + age * HOUR + timedelta(minutes=30))
        views: float = story.absolute(hour)
        if hour < kept_since:
            views = on_the_line(story, hour)
        is_known = hour >= kept_since or age >= 24
        if story.views and is_known:
            before = before_publication(story, kept_since=kept_since)
            numbers.append(max(0, views - before))
    return numbers


def band_by_hand(numbers: list[float]) -> Band:
    """Returns the middle half of the numbers."""
    in_order = sorted(numbers)
    left_out = len(in_order) // 4
    middle = in_order[left_out : len(in_order) - left_out]
    return Band(min(middle), mean(middle), max(middle))


def before_publication(story: Story, *, kept_since: int) -> int:
    """Returns the views from before its publication, as far as history still knows them."""
    published = story.article.published_at
    assert published is not None
    first_hour = buckets.hour_index(published)
    if first_hour >= kept_since:
        return story.absolute(first_hour)
    day = buckets.local_day(first_hour)
    viewed_later = [
        hour for hour in story.views if hour >= first_hour and buckets.local_day(hour) == day
    ]
    if not viewed_later:
        return story.absolute(first_hour)
    # The one row of that day has its last views.
    return sum(views for hour, views in story.views.items() if buckets.local_day(hour) < day)


def on_the_line(story: Story, hour: int) -> float:
    """Returns the views before an hour of which only the day's start and end are known."""
    day = buckets.hour_start(hour).astimezone(get_default_timezone()).date()
    zone = get_default_timezone()
    start, end = (
        buckets.hour_index(datetime(one.year, one.month, one.day, tzinfo=zone))
        for one in (day, day + timedelta(days=1))
    )
    at_start, at_end = story.absolute(start), story.absolute(end)
    return at_start + (at_end - at_start) * (hour - start) / (end - start)


def same(found: Bands, wanted: Bands) -> None:
    assert {*found} == {*wanted}
    for slot, band in found.items():
        # Stored with two digits.
        assert [*band] == pytest.approx([*wanted[slot]], abs=0.011), slot


@pytest.mark.parametrize(
    ("days", "is_thinned", "zone"),
    [  # each pair of values once
        (5, False, "UTC"),
        (5, True, "Europe/Berlin"),
        (40, False, "Europe/Berlin"),
        (40, True, "UTC"),
        (120, False, "UTC"),
        (120, True, "Europe/Berlin"),
    ],
)
def test_the_usual_of_a_random_history_is_that_of_a_plain_computation(
    *,
    days: int,
    is_thinned: bool,
    zone: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "FEWEST", 3)
    monkeypatch.setattr(peers, "PEERS", 12)
    settings.TIME_ZONE = zone
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"days": 10 if is_thinned else 200}}
    chance = random.Random(f"{days} {zone} {examples(1)}")
    stories = newsroom(chance, days=days, number=40)
    for back in range(140, -1, -7):
        thinning.thin(at=AT - timedelta(days=back))
    usual_renewal.renew(at=AT, faults=Faults())
    sections: list[Category | None] = [None, *Category.objects.all()]
    names = {
        section: usual.name_of("site.article", subject_of(section) if section else "")
        for section in sections
    }
    stored = usual.stored(usual.AskedUsual(names=[*names.values()])).bands
    kept_since = thinning.first_whole_hour(at=AT)
    for section, name in names.items():
        same(stored.get(name, {}), expected(stories, section, kept_since=kept_since))


def article(age_in_hours: float, views: int = 10, **values: Any) -> Article:
    """Returns an article of that age, all of whose views came in the hour of its publication."""
    published = AT - age_in_hours * HOUR
    made = Article.objects.create(**{"published_at": published, **values})
    store(subject_of(made), Counter({buckets.hour_index(published): views}))
    return made


def bands(name: str = "site.article") -> Bands:
    """Returns the bands that a renewal stores."""
    if not History.objects.filter(subject="site.article").exists():
        store("site.article", Counter({buckets.hour_index(AT) - 24 * 400: 1}))
    Usual.objects.all().delete()
    usual_renewal.renew(at=AT, faults=Faults())
    return usual.stored(usual.AskedUsual(names=[name])).bands.get(name, {})


@pytest.mark.parametrize("seed", range(examples(3)))
def test_absolute_views_are_those_of_a_plain_computation_whatever_hours_are_asked(
    seed: int,
) -> None:
    chance = random.Random(seed)
    now = buckets.hour_index(AT)
    hours = range(now - 60 * 24, now)
    views_of = {"site.article:1": Counter[int](), "site.article:never": Counter[int]()}
    for number in range(2, 9):  # the first ones have hours next to each other
        views_of[f"site.article:{number}"] = Counter(
            {chance.choice(hours[-(number**4) :]): chance.randint(1, 9) for _ in range(20)}
        )
    views_of["site.article:1"][now + 9] = 5  # after all hours that are asked
    for name, views in views_of.items():
        store(name, views)
    pairs = {
        (name, chance.choice([hour, hour + 1, chance.choice(hours)]))
        for name, views in views_of.items()
        for hour in [*views] * 2 + [now] * 3
    }
    assert usual.absolute_views(pairs) == {
        (name, hour): sum(count for viewed, count in views_of[name].items() if viewed < hour)
        for name, hour in pairs
        if name != "site.article:never"
    }


def test_the_highest_and_the_lowest_quarter_are_left_out() -> None:
    assert band_of([1000, 3, 1, 5, 4, 0, 6, 9]) == Band(3, 4.5, 6)
    assert band_of([7]) == Band(7, 7, 7)


def test_between_two_ages_it_is_on_the_line() -> None:
    known = {1: Band(0, 10, 20), 2: Band(10, 20, 40), START + 2: Band(0, 10, 20)}
    assert at_age(known, 0) == at_age(known, -5) == NOTHING
    assert at_age(known, 0.5) == Band(0, 5, 10)
    assert at_age(known, 1.5) == Band(5, 15, 30)
    assert at_age(known, 2) == Band(10, 20, 40)
    assert at_age(known, 2.1) is None  # nobody knows what is usual after three hours
    assert at_age({}, 10**6) is None


def test_too_few_peers_have_no_usual() -> None:
    for age in range(30, 30 + peers.FEWEST - 1):
        article(age)
    assert bands() == {}
    article(3)  # too young for the later ages
    assert {*bands()} == {1, 2, START + 2}


def test_a_section_with_too_few_peers_has_none_and_the_model_has_one() -> None:
    large, small = factories.category(), factories.category()
    for age in range(100, 100 + peers.FEWEST):
        article(age, category=large)
    article(100, category=small)
    assert bands(usual.name_of("site.article", subject_of(large)))[72].usual == 10
    assert bands(usual.name_of("site.article", subject_of(small))) == {}
    large.delete()
    assert bands(usual.name_of("site.article", f"site.category:{large.pk}")) == {}


def test_drafts_and_deleted_and_hidden_peers_do_not_count() -> None:
    for age in range(100, 100 + peers.FEWEST):
        article(age)
    gone = [article(90, views=1000) for _ in range(20)]
    assert bands()[72].usual > 10
    for number, peer in enumerate(gone):
        if number % 2:
            peer.delete()
        else:
            peer.published_at = None
            peer.save()
    assert bands()[72] == Band(10, 10, 10)


def test_what_was_never_viewed_does_not_count() -> None:
    for age in range(100, 100 + peers.FEWEST):
        article(age)
    for _ in range(50):
        Article.objects.create(published_at=AT - 100 * HOUR)
    assert bands()[72] == Band(10, 10, 10)


def test_views_before_the_publication_do_not_count() -> None:
    for age in range(100, 100 + peers.FEWEST):
        peer = article(age)
        History.objects.filter(subject=subject_of(peer)).delete()
        first = buckets.hour_index(AT - age * HOUR)
        store(subject_of(peer), Counter({0: 500, first - 1: 50, first: 7}))
    assert bands()[72] == Band(7, 7, 7)


def test_what_was_published_before_history_began_does_not_count() -> None:
    began = buckets.hour_index(AT) - 200
    store("site.article", Counter({began: 1}))
    for age in range(150, 150 + peers.FEWEST):
        article(age)
    for _ in range(50):
        article(250, views=1000)
    assert bands()[72] == Band(10, 10, 10)
    assert 336 not in bands()


def test_views_after_a_reset_are_none_below_zero() -> None:
    for age in range(100, 100 + peers.FEWEST):
        peer = article(age)
        published = buckets.hour_index(AT - age * HOUR)
        History.objects.filter(subject=subject_of(peer)).delete()
        rows = ((published - 5, 90), (published + 10, 3))
        History.objects.bulk_create(
            History(subject=subject_of(peer), hour=hour, views=views, visitors=0)
            for hour, views in rows
        )
    assert bands()[72] == NOTHING


def test_only_the_last_peers_count_at_each_age() -> None:
    for number in range(peers.PEERS + 30):
        article(100 + number, views=10 if number < peers.PEERS else 1000)
    assert bands()[72] == Band(10, 10, 10)
    assert bands()[168].usual > 10  # of those that are so old


def test_rows_are_read_again_for_an_age_at_which_too_few_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(80):
        article(2 + 3 * number, views=number)
    wanted = bands()
    monkeypatch.setattr(peers, "ROWS", 2 * peers.FEWEST)
    monkeypatch.setattr(peers, "PEERS", peers.FEWEST)
    few = bands()
    assert {*few} == {*wanted}
    assert few[168].usual == pytest.approx(60.5, abs=1)  # the last ten of that age: 56 to 65


def test_a_field_without_a_time_is_compared_by_its_day(settings: Settings) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    field = published_field(Article)
    assert peers._value(field, AT).hour == 10
    settings.USE_TZ = False
    assert peers._value(field, AT).tzinfo is None
    assert peers._value(Note._meta.get_field("day"), AT) == date(2026, 11, 20)


def test_a_full_flush_computes_it_once_an_hour() -> None:
    counts.view(factories.post())  # so that the flush has something to do
    store("site.article", Counter({buckets.hour_index(buckets.now()) - 500: 1}))
    for _ in range(peers.FEWEST):
        published = buckets.now() - 5 * HOUR
        peer = Article.objects.create(published_at=published)
        store(subject_of(peer), Counter({buckets.hour_index(published): 8}))
    flush(only_changed=True)
    first_flush_is_full = Usual.objects.get(subject="site.article")
    Usual.objects.update(bands="", hour=first_flush_is_full.hour - 1)
    flush(only_changed=True)
    assert {*Usual.objects.values_list("bands", flat=True)} == {""}
    flush()
    second_flush_is_full = Usual.objects.get(subject="site.article")
    assert second_flush_is_full.hour == first_flush_is_full.hour
    assert second_flush_is_full.bands == first_flush_is_full.bands
    same_hour = buckets.hour_start(first_flush_is_full.hour)
    with CaptureQueriesContext(databases.of(Usual)) as queries:
        usual_renewal.renew(at=same_hour, faults=Faults())
    assert len(queries) == 1


def test_nothing_usual_is_stored_nowhere_and_what_is_gone_is_deleted() -> None:
    usual_renewal.renew(at=AT, faults=Faults())
    assert not Usual.objects.exists()
    Usual.objects.create(subject="gone.model", bands="[]", hour=1)
    usual_renewal.renew(at=AT, faults=Faults())
    assert not Usual.objects.exists()


@pytest.mark.parametrize(
    ("zone", "days", "days_ago"),
    [  # the clocks change within these weeks
        ("UTC", 20, 0),
        ("Europe/Berlin", 50, 0),
        ("Europe/Berlin", 90, 17),
        ("Asia/Kolkata", 50, 17),
        ("America/Santiago", 90, 0),
        ("America/Santiago", 50, 17),
    ],
)
def test_the_hours_of_the_week_are_those_of_a_plain_computation(
    zone: str, days: int, days_ago: int, settings: Settings
) -> None:
    settings.TIME_ZONE = zone
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"days": 45}}
    chance = random.Random(f"{zone} {days}")
    at = AT - timedelta(days=days_ago)
    last = buckets.hour_index(at)
    by_model = {}
    for label, first in (("site.article", last - 24 * days), ("site.post", last - 24 * 35)):
        views = Counter({hour: chance.randrange(50) for hour in range(first, last + 1)})
        views[first] += 1
        by_model[label] = views
        store(label, views)
    thinning.thin(at=at)
    usual_renewal.renew(at=at, faults=Faults())
    site = Counter(by_model["site.article"])
    site.update(by_model["site.post"])
    for label, views in (*by_model.items(), ("", site)):
        found = usual.stored(usual.AskedUsual(names=[usual.name_of_week(label)])).bands
        wanted = expected_week(views, ZoneInfo(zone), at=at, kept_days=45)
        same(found.get(usual.name_of_week(label), {}), wanted)
        assert len(wanted) in (0, HOURS_OF_WEEK + 7)
        name = usual.name_of_past(label)
        past = usual.stored(usual.AskedUsual(names=[name])).past.get(name)
        assert (past is None) == (not wanted)
        if past is None:
            continue
        weeks_before = usual_week.WeeksBefore(past)
        for days_back in (0, 1, 5, 19, 27):
            day = at.astimezone(ZoneInfo(zone)).date() - timedelta(days=days_back)
            known = {}
            band = weeks_before.of_day(day)
            if band is not None:
                known[usual_week.slot_of_day(day)] = band
            for hour in usual_week.hours_of_day(day):
                band = weeks_before.of_hour(hour)
                if band is not None:
                    known[usual_week.slot_of(hour)] = band
            same(known, expected_day(views, ZoneInfo(zone), day, at=at, kept_days=45))


@cache
def local(hour: int, zone: ZoneInfo) -> datetime:
    """Returns the start of the hour (since 1970) by the clocks of the zone."""
    return buckets.hour_start(hour).astimezone(zone)


def expected_week(views: Counter[int], zone: ZoneInfo, *, at: datetime, kept_days: int) -> Bands:
    """Returns the bands by slot of the week, by a plain computation."""
    local_day = {hour: local(hour, zone).date() for hour in views}
    first_day = min(local_day.values())
    today = local(buckets.hour_index(at), zone).date()
    kept_day = (at - timedelta(days=kept_days)).astimezone(zone).date()
    days = {day for day in local_day.values() if first_day < day < today}
    days = {day for day in days if day >= max(kept_day, today - timedelta(weeks=8))}
    numbers: dict[int, list[int]] = {}
    views_of_days: Counter[date] = Counter()
    for hour, day in local_day.items():
        if day in days:
            slot = day.weekday() * 24 + local(hour, zone).hour
            numbers.setdefault(slot, []).append(views[hour])
            views_of_days[day] += views[hour]
    for day, views_of_day in views_of_days.items():
        numbers.setdefault(HOURS_OF_WEEK + day.weekday(), []).append(views_of_day)
    if len(days) < 4 * 7:
        return {}
    return {slot: band_of(some) for slot, some in numbers.items()}


def expected_day(
    views: Counter[int], zone: ZoneInfo, day: date, *, at: datetime, kept_days: int
) -> Bands:
    """Returns the bands of a day and of its hours, by their slots, by a plain computation."""
    hours_with_today = range(min(views), max(views) + 24)
    local_hours = {hour: local(hour, zone) for hour in hours_with_today}
    today = at.astimezone(zone).date()
    first_day = max(
        min(local_hours.values()).date() + timedelta(days=1),
        (at - timedelta(days=kept_days)).astimezone(zone).date(),
    )
    days_before = {day - timedelta(weeks=weeks) for weeks in range(1, 9)}
    known_days = {one for one in days_before if first_day <= one < today}
    numbers: dict[int, list[int]] = {}
    views_of_days: Counter[date] = Counter()
    for hour, at_hour in local_hours.items():
        if at_hour.date() in known_days:
            numbers.setdefault(at_hour.weekday() * 24 + at_hour.hour, []).append(views[hour])
            views_of_days[at_hour.date()] += views[hour]
    numbers[HOURS_OF_WEEK + day.weekday()] = [*views_of_days.values()]
    hours = {at_hour.hour for at_hour in local_hours.values() if at_hour.date() == day}
    slots = {day.weekday() * 24 + hour for hour in hours} | {HOURS_OF_WEEK + day.weekday()}
    return {
        slot: band_of(some) for slot, some in numbers.items() if slot in slots and len(some) >= 4
    }
