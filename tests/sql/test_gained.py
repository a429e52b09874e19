"""The band of a chart's point is the middle half of what stories gained in that time of their age."""

import random
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from statistics import mean

import pytest
from pytest_django import Settings

from readtrack import buckets
from readtrack.numbers.sql import peers, thinning, usual, usual_renewal
from readtrack.numbers.sql.gained import WINDOWS, gained, name_of_gains
from readtrack.numbers.sql.usual import AGES, NOTHING, Band, Bands
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.site.models import Article, Category
from tests.sql.test_usual import AT, HOUR, Story, on_the_line, store
from tests.support import factories

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]
NOW = buckets.hour_index(AT)


def newsroom(chance: random.Random) -> tuple[Category, list[Story]]:
    """Returns a section and its stories, of which some are young, among others that had far more.

    All of them have views in most hours, fewer and fewer, so that totals of the old are no guide.
    """
    section, other = factories.category(), factories.category()
    store("site.article", Counter({NOW - 24 * 60: 1}))
    ages = [chance.uniform(5.1 * 24, 9 * 24) for _ in range(12)]
    ages += [chance.uniform(5, 60) for _ in range(5)]
    stories = []
    for age in ages:
        for category, times in ((section, 1), (other, 100)):
            published = AT - age * HOUR
            article = Article.objects.create(category=category, published_at=published)
            first = buckets.hour_index(published)
            level = times * chance.choice([20, 60, 400])
            views = Counter({first - 1: 5})  # previews
            for hour in range(first, NOW + 1):
                views[hour] = chance.randrange(level // (1 + (hour - first) // 12) + 2)
            store(subject_of(article), views)
            if category == section:
                stories.append(Story(article, views))
    return section, stories


def middle_half(numbers: Iterable[float]) -> Band:
    in_order = sorted(numbers)
    left_out = len(in_order) // 4
    middle = in_order[left_out : len(in_order) - left_out]
    return Band(min(middle), mean(middle), max(middle))


def by_hand(stories: list[Story], since: int, until: int) -> Band | None:
    """Returns what the stories gained between two ages (hours), if enough of them are so old."""
    age = min(age for age in AGES if age >= until)
    gains = []
    for story in stories:
        published = story.article.published_at
        assert published is not None
        if published + age * HOUR + timedelta(minutes=30) <= AT:
            first = buckets.hour_index(published)
            in_time = range(first + since, first + until)
            gains.append(sum(story.views[hour] for hour in in_time))
    return middle_half(gains) if len(gains) >= peers.FEWEST else None


def stored(section: Category) -> Bands:
    usual_renewal.renew(at=AT, faults=Faults())
    name = name_of_gains("site.article", subject_of(section))
    return usual.stored(usual.AskedUsual([name])).bands.get(name, {})


@pytest.mark.parametrize("seed", range(2))
def test_it_is_what_a_computation_by_hand_finds(seed: int) -> None:
    section, stories = newsroom(random.Random(seed))
    gains = stored(section)
    for hour in range(24):  # exact on the first day
        same(gained(gains, hour, hour + 1), by_hand(stories, hour, hour + 1))
        same(gained(gains, 0, hour + 1), by_hand(stories, 0, hour + 1))
    for since in range(3, 49, 3):
        same(gained(gains, since, since + 24), by_hand(stories, since, since + 24))
        same(gained(gains, since + 1, since + 25), by_hand(stories, since, since + 24))
    for since in range(24, 72, 3):
        of_three = by_hand(stories, since, since + 3)
        assert of_three is not None
        same(gained(gains, since + 1, since + 2), Band(*(views / 3 for views in of_three)))
    same(gained(gains, 73, 97), by_hand(stories, 72, 96))
    assert all(0 <= band.low <= band.high for band in gains.values())


def same(found: Band | None, wanted: Band | None) -> None:
    assert found is not None
    assert wanted is not None
    assert [*found] == pytest.approx([*wanted], abs=0.011)  # stored with two digits


def test_too_few_stories_that_were_so_old_have_no_band() -> None:
    section, _ = newsroom(random.Random(5))
    Article.objects.filter(published_at__lt=AT - 6 * 24 * HOUR).delete()
    gains = stored(section)
    for since, until in ((30, 31), (0, 24), (12, 36)):
        assert gained(gains, since, until) is None
    assert gained(gains, -5, 0) == NOTHING


def test_no_window_is_near_a_week_or_what_is_older_than_all() -> None:
    gains = {number: Band(1, 2, 3) for number in range(len(WINDOWS))}
    assert gained(gains, 0, 7 * 24) is None
    assert gained(gains, max(AGES), max(AGES) + 24) is None
    for since in range(-24, max(AGES) - 24, 5):
        assert gained(gains, since, since + 24) is not None
        assert gained(gains, since, since + 1) is not None


def test_of_days_that_are_thinned_only_days_are_known(settings: Settings) -> None:
    section, stories = newsroom(random.Random(6))
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"days": 3}}
    for back in range(14, -1, -7):
        thinning.thin(at=AT - timedelta(days=back))
    gains = stored(section)
    assert gained(gains, 5, 6) is None
    assert gained(gains, 12, 36) is None
    kept_since = thinning.first_whole_hour(at=AT)
    numbers = []
    for story in stories[:12]:  # the old ones
        published = story.article.published_at
        assert published is not None
        first = buckets.hour_index(published)
        ends = []
        for hour in (first + 48, first + 72):
            is_thinned = hour < kept_since
            ends.append(on_the_line(story, hour) if is_thinned else story.absolute(hour))
        numbers.append(ends[1] - ends[0])
    same(gained(gains, 48, 72), middle_half(numbers))
