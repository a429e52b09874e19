"""How a period went: by the days above, within and below the usual, and by what changed most."""

from collections import Counter
from datetime import date, datetime, timezone
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers import local_time
from readtrack.numbers.filters import chosen_in
from readtrack.numbers.loading import load
from readtrack.numbers.models import History
from readtrack.numbers.scope import Scope
from readtrack.numbers.verdict import UsualDay, UsualDays, Verdict, kind_of, verdict_of
from readtrack.numbers.words import lead
from readtrack.subjects import subject_of
from tests.conftest import Start
from tests.site.models import Article
from tests.support import factories, usual
from tests.support.people import add_people
from tests.support.rows import each_row
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db
FRIDAY = datetime(2026, 11, 20, 9, 30, tzinfo=timezone.utc)
OF_ARTICLES = {"model": "site.article"}
LONG_AGO = 400  # days
USUAL_DAYS = dict.fromkeys(range(57), 100)


def verdict(**asked: Any) -> Verdict:
    """Returns how the period that is asked for went; with `has_filters` False, without its filters."""
    has_filters = asked.pop("has_filters", True)
    data = load(Scope.parse(asked), ["over-time", "most-viewed"], row_limit=10)
    return verdict_of(data, chosen_in(data) if has_filters else ())


def viewed(views_by_age: dict[int, int], *, begin: int = LONG_AGO, **values: Any) -> Article:
    """Returns an article that was viewed so often on each day, by the age of the day.

    The model has no other views, and its history begins so many days ago.
    """
    published = buckets.now() - 100 * buckets.DAY
    article = Article.objects.create(
        title="The first", published_at=published, view_count=sum(views_by_age.values()), **values
    )
    absolute = 0
    rows = []
    for age in sorted({begin, *views_by_age}, reverse=True):
        absolute += views_by_age.get(age, 1)
        # Today's are in its first hour, so that they are there at any time of day.
        hour = local_time.first_hour_of(local_time.today() - age * buckets.DAY) + (12 if age else 0)
        row = {"hour": hour, "views": absolute, "visitors": 0}
        rows += [History(subject=name, **row) for name in (subject_of(article), "site.article")]
    History.objects.bulk_create(rows)
    flush()
    usual.renew()
    return article


def views_by_day(days: int) -> Counter[date]:
    """Returns the views of the last days by the rows of SQL."""
    views: Counter[date] = Counter()
    before = 0
    for row in History.objects.filter(subject="site.article").order_by("hour"):
        day = buckets.local_day(row.hour)
        if local_time.today() - day < days * buckets.DAY:
            views[day] += row.views - before
        before = row.views
    return views


def test_the_verdict_goes_by_the_full_days_above_and_below_the_usual() -> None:
    article = viewed({**USUAL_DAYS, 1: 300, 2: 300, 3: 300, 4: 300, 5: 20, 0: 999})
    found = verdict(period="7")
    assert found.days == UsualDays(above=4, within=1, below=1)
    assert (found.word, found.kind) == ("good", "week")
    assert found.views == views_by_day(7).total()
    assert found.story is not None
    assert (found.story.obj, found.story.share) == (article, 100)
    assert found.change is not None
    # Of the days that are over, if the whole page compares so.
    assert found.change.name == "views"
    assert found.no_band is None


def test_a_day_is_no_part_of_what_it_is_judged_by() -> None:
    # Yesterday had as many views as two such days before it, and three times those of six others.
    viewed({**USUAL_DAYS, 1: 300, 8: 300, 15: 300, 57: 100})
    found = verdict(period="yesterday")
    assert found.day == UsualDay(views=300, low=100, high=100)
    assert found.word == "good"


@pytest.mark.parametrize(
    ("views", "word"), [((300, 300, 300, 100, 20, 20), "usual"), ((20,) * 4 + (100, 100), "quiet")]
)
def test_as_many_days_above_as_not_make_no_good_week(views: tuple[int, ...], word: str) -> None:
    viewed({**USUAL_DAYS, **dict(enumerate(views, 1))})
    found = verdict(period="7")
    assert found.word == word
    assert found.days is not None
    assert found.days.days == len(views)


def test_a_day_has_its_views_beside_the_usual() -> None:
    viewed({**USUAL_DAYS, 1: 300, 2: 100, 3: 20})
    for age, (views, word) in enumerate([(300, "good"), (100, "usual"), (20, "quiet")], 1):
        day = f"{local_time.today() - age * buckets.DAY}"
        found = verdict(**{"from": day, "to": day})
        assert found.day == (views, 100, 100)
        assert (found.word, found.kind, found.days) == (word, "day", None)


@pytest.mark.parametrize(("views", "word"), [(115, "good"), (109, "usual"), (85, "quiet")])
def test_without_a_band_it_goes_by_the_change_of_views(views: int, word: str) -> None:
    ages = range(57)
    viewed({age: views if 7 <= age < 14 else 100 for age in ages}, category=factories.category())
    [category] = {subject_of(row.category) for row in Article.objects.all() if row.category}
    today = local_time.today()
    found = verdict(
        category=category,
        **{"from": f"{today - 13 * buckets.DAY}", "to": f"{today - 7 * buckets.DAY}"},
    )
    assert (found.word, found.days, found.views_change) == (word, None, views - 100)
    assert [one.label for one in found.filters] == ["Category"]
    assert found.change is None  # that of views stands beside the count


@pytest.mark.parametrize(
    ("views", "usual_views", "word", "change"),
    [
        (5, 3, None, None),  # of a whole week
        (29, 7, None, None),
        (30, 7, "good", "views"),
        (7, 30, "quiet", "views"),
        (40, 30, "usual", None),  # half of all weeks differ by as much
    ],
)
def test_few_views_are_told_and_not_judged(
    views: int, usual_views: int, word: str | None, change: str | None
) -> None:
    # So long ago that no band is known.
    week = {70 + age: number for age, number in enumerate(spread(views))}
    week_before = {77 + age: number for age, number in enumerate(spread(usual_views))}
    section = factories.category()
    viewed({**week, **week_before}, category=section)
    last = local_time.today() - 70 * buckets.DAY
    days = {"from": f"{last - 6 * buckets.DAY}", "to": f"{last}"}
    for asked in (days, {**days, "category": subject_of(section)}):
        found = verdict(has_filters=False, **asked)
        assert found.views == views
        assert (found.word, found.days) == (word, None)
        assert (found.views_change is None) == (word is None)
        text = lead(found).text
        told = f"There were {views} views."
        assert text.startswith(told) == (word is None), text
        assert change or "rose" not in text
        are_many = views >= 30
        assert (found.story is not None) == are_many
        share = "100% of these views" if "category" in asked else "All views"
        assert (share in text) == are_many


def spread(views: int) -> list[int]:
    """Returns the views of a week by day."""
    return [views // 7 + (number < views % 7) for number in range(7)]


@pytest.mark.parametrize(("views", "usual_views"), [((1,) * 6, 0), ((4,) * 6, 1), ((1,) * 6, 4)])
def test_few_views_beside_the_usual_are_no_good_and_no_quiet_time(
    views: tuple[int, ...], usual_views: int
) -> None:
    viewed({**dict.fromkeys(range(57), usual_views), **dict(enumerate(views, 1)), 60: 1})
    for asked in ({"period": "7"}, {"period": "yesterday"}):
        found = verdict(**asked)
        assert found.views
        assert (found.days, found.day, found.word) == (None, None, None)
        assert found.change is None
        assert lead(found).text.startswith("There w")


def test_the_number_that_changed_most_is_told_from_5_per_cent_on() -> None:
    viewed(USUAL_DAYS)
    today = local_time.today()
    for age in range(1, 14):
        people = [f"{age} {number}" for number in range(39 if age < 7 else 30)]
        add_people(["site.article"], people, day=today - age * buckets.DAY)
    found = verdict(period="7", **OF_ARTICLES)
    assert found.change is not None
    assert found.change.name == "visitors"
    assert 25 <= found.change.per_cent <= 35


def test_a_young_site_says_since_when_it_counts() -> None:
    viewed({3: 10, 0: 5}, begin=3)
    found = verdict(period="7", **OF_ARTICLES)
    assert found.is_older_than_history
    assert found.began == local_time.today() - 3 * buckets.DAY
    assert found.no_band == "young"
    assert (found.word, found.views_change, found.change) == (None, None, None)


@pytest.mark.parametrize(
    ("days_kept", "asked", "why"),
    [
        (20, {"period": "7"}, "deleted"),
        (40, {"period": "7"}, None),  # yesterday has a band
        (40, {"from": 25, "to": 20}, "deleted"),  # the weeks before these days are gone
        (90, {"from": 25, "to": 20}, None),
    ],
)
def test_hours_that_are_not_kept_are_why_nothing_is_usual(
    days_kept: int, asked: dict[str, Any], why: str | None, settings: Settings
) -> None:
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"days": days_kept}}
    viewed(USUAL_DAYS)
    days = {
        name: value if name == "period" else f"{local_time.today() - value * buckets.DAY}"
        for name, value in asked.items()
    }
    found = verdict(**days, **OF_ARTICLES)
    assert found.no_band == why
    said = "What is usual is not known here: views by the hour are kept for 20 days."
    assert (said in lead(found).remarks) is (why is not None and days_kept == 20)
    assert "What is usual is known after four weeks." not in lead(found).remarks


def test_a_site_without_a_view_says_so() -> None:
    found = verdict(period="7")
    assert (found.state, found.last_day) == ("nothing", None)


def test_a_day_before_all_views_is_empty_and_no_new_site() -> None:
    viewed({20: 5})
    long_ago = {"from": "2001-02-03", "to": "2001-02-03"}
    found = verdict(has_filters=False, **long_ago)
    assert (found.state, found.last_day) == ("empty", None)


def test_an_author_without_a_story_is_told_so() -> None:
    author = factories.user()
    assert verdict(period="7", author=f"{author.pk}").state == "storyless"
    Article.objects.create(author=author)
    assert verdict(period="7", author=f"{author.pk}").state == "empty"


def test_an_empty_period_has_the_day_of_the_last_view() -> None:
    viewed({20: 5})
    found = verdict(period="7", has_filters=False)
    assert (found.state, found.last_day) == ("empty", local_time.today() - 20 * buckets.DAY)


def test_without_redis_there_is_no_verdict(start_redis: Start) -> None:
    valkey = start_redis()
    viewed(USUAL_DAYS)
    valkey.stop()
    assert verdict(period="7").state == "silent"


@each_row(
    ("asked", "kind"),
    [
        ({"period": "yesterday"}, "day"),
        ({"period": "7"}, "week"),
        ({"period": "28"}, "period"),
        ({"period": "month"}, "month"),
        ({"period": "year"}, "year"),
        ({"period": "all"}, "period"),
        ({"from": "2026-10-01", "to": "2026-10-31"}, "month"),
        ({"from": "2026-10-01", "to": "2026-10-30"}, "period"),
        ({"from": "2025-01-01", "to": "2025-12-31"}, "year"),
        ({"from": "2025-01-01", "to": "2025-12-30"}, "period"),
        ({"from": "2025-02-01", "to": "2026-01-31"}, "period"),
        ({"from": "2026-01-01", "to": "2026-02-28"}, "period"),
        ({"from": "2026-11-09", "to": "2026-11-15"}, "week"),
    ],
)
def test_what_a_period_is_called(asked: dict[str, str], kind: str) -> None:
    assert kind_of(Scope.parse(asked, at=FRIDAY)) == kind
    assert kind_of(Scope.parse({"period": "today"})) == "today"


def test_the_sentence_the_numbers_and_the_chart_keep_to_their_budget(wire: Wire) -> None:
    viewed(USUAL_DAYS)
    scope = Scope.parse({"period": "7"})
    verdict(period="7")  # loads scripts into Redis
    with wire.counted() as trips, CaptureQueriesContext(connection) as queries:
        data = load(scope, ["over-time", "most-viewed"], row_limit=10)
        found = verdict_of(data, chosen_in(data))
    assert found.state == "known"
    assert len(queries) <= 5, [query["sql"][:200] for query in queries]
    assert trips[0] <= 2
