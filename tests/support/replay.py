"""Weeks of views that might have been: weekdays, weekends, nights and holidays, stories that fade, good
ones and poor ones, old pages that are always read, and noise. The same seed makes the same views.

`Past` writes them to SQL's history by the hour, as flushes do, and has them by the minute, as Redis
does.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from readtrack import buckets
from readtrack.numbers.models import History, Usual
from readtrack.numbers.sql import usual, usual_renewal
from readtrack.numbers.sql.gained import name_of_gains
from readtrack.numbers.sql.usual import AskedUsual, Bands, name_of, name_of_week
from readtrack.numbers.usual_now import Kind, levels_of
from readtrack.sql.faults import Faults
from readtrack.subjects import subject_of
from tests.site.models import Article

LABEL = "site.article"
START = datetime(2025, 1, 6, tzinfo=timezone.utc)  # a Monday
FIRST_HOUR = buckets.hour_index(START)
WARM_UP = 9  # weeks of history before the replay
LIFE = 3 * 24  # hours for which a story is viewed
STORIES = 6  # a day, on average
OLD_PAGES = 4
RATE = 240.0  # views an hour of an ordinary story at its best, by day
TICK = 20  # the second of each minute at which the schedule runs
# Views by hour of the day, as a share of those of a usual hour.
DAY = [.3, .2, .15, .12, .12, .2, .45, .9, 1.3, 1.5, 1.5, 1.5, 1.6, 1.6, 1.4, 1.4, 1.4, 1.4, 1.4, 1.4, 1.5, 1.4, .9, .5]  # fmt: skip
WEEKEND = 0.6
HOLIDAY = (0.4, 0.5)  # of the views of such a weekday
HOLIDAY_EVERY = 23  # days, on average


@dataclass(slots=True)
class Story:
    """A story, and its views by minute from its publication on."""

    published: datetime
    quality: float  # times the views of an ordinary story
    subject: str = ""
    is_old: bool = False  # an old page, with the same views year after year
    minutes: list[int] = field(default_factory=list)  # by minute since the hour of its publication
    early: list[int] = field(default_factory=list)  # those before the second TICK of the minute
    expected: list[float] = field(default_factory=list)  # views by hour, without chance

    @property
    def first_hour(self) -> int:
        return buckets.hour_index(self.published)

    def add(self, seconds: Sequence[int]) -> None:
        """Adds an hour with views at these seconds."""
        start = len(self.minutes)
        self.minutes += [0] * 60
        self.early += [0] * 60
        for second in seconds:
            self.minutes[start + second // 60] += 1
            self.early[start + second // 60] += second % 60 < TICK

    def last_minutes(self, minute: int) -> list[int]:
        """Returns the views in the 60 minutes up to that minute (since 1970), the last one as it is
        at the second TICK.
        """
        index = minute - self.first_hour * 60
        before = self.minutes[max(0, index - 59) : index]
        return [0] * (59 - len(before)) + before + [self.early[index]]

    def hours(self, present: int) -> dict[int, int]:
        """Returns the views of the 23 whole hours before the present one, since the publication."""
        first = max(self.first_hour + 1, present - 23)
        return {hour: self.views_of(hour) for hour in range(first, present)}

    def views_of(self, hour: int) -> int:
        index = (hour - self.first_hour) * 60
        return sum(self.minutes[index : index + 60])

    def is_viewed(self, hour: int) -> bool:
        return 0 <= hour - self.first_hour < len(self.minutes) // 60


class Past:
    """Views of so many weeks after the warm-up."""

    def __init__(self, *, weeks: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.hours = range(FIRST_HOUR, FIRST_HOUR + (WARM_UP + weeks) * 7 * 24)
        self.replayed = range(FIRST_HOUR + WARM_UP * 7 * 24, self.hours.stop)
        self.holidays = {
            day: self.chance.uniform(*HOLIDAY)
            for day in range(len(self.hours) // 24)
            if self.chance.random() < 1 / HOLIDAY_EVERY
        }
        self.holidays[WARM_UP * 7 + 3] = HOLIDAY[0]  # the shortest replay has one
        self.level = [*self._levels()]  # of the site, by hour
        self.stories = [*self._old_pages(), *self._stories()]
        for story in self.stories:
            self._view(story)
        # Views of the site by minute since the first hour.
        self._site = [0] * (len(self.hours) * 60)
        for story in self.stories:
            start = (story.first_hour - self.hours.start) * 60
            for index, views in enumerate(story.minutes, start):
                self._site[index] += views

    def _levels(self) -> Iterator[float]:
        """Yields the level of each hour, with the noise of the whole site."""
        day_noise = 1.0
        for number in range(len(self.hours)):
            day, hour = divmod(number, 24)
            if hour == 0:
                day_noise = self.chance.lognormvariate(0, 0.08)
            # People go to bed after midnight, and get up later on a holiday.
            share = min(1.0, (hour + 1) / 7)
            kind_of_day = share * self._of_day(day) + (1 - share) * self._of_day(day - 1)
            yield DAY[hour] * day_noise * kind_of_day * self.chance.lognormvariate(0, 0.1)

    def _of_day(self, day: int) -> float:
        """Returns the views of the day, as a share of those of a weekday."""
        return self.holidays.get(day, WEEKEND if day % 7 >= 5 else 1.0)

    def _old_pages(self) -> Iterator[Story]:
        for _ in range(OLD_PAGES):
            yield Story(START, self.chance.uniform(0.1, 0.7), is_old=True)

    def _stories(self) -> Iterator[Story]:
        """Yields stories, most of them by day; each fifth has 2 to 3 times the usual views."""
        for number, hour in enumerate(self.hours):
            expected = STORIES / 24 * DAY[number % 24]
            for _ in range(poisson(expected, self.chance)):
                quality = min(2.0, self.chance.lognormvariate(-0.1, 0.4))
                if self.chance.random() < 0.2:
                    quality = self.chance.uniform(2, 3)
                seconds = timedelta(seconds=self.chance.randrange(3600))
                yield Story(buckets.hour_start(hour) + seconds, quality)

    def _view(self, story: Story) -> None:
        length = self.hours.stop - story.first_hour
        for number in range(length if story.is_old else min(LIFE, length)):
            hour = story.first_hour + number
            # The views of a story are less even than chance: people tell each other of it.
            expected = self.rate(story, hour) * self.chance.gammavariate(20, 1 / 20)
            story.expected.append(expected)
            first_second = 0
            if number == 0 and not story.is_old:
                first_second = int((story.published - buckets.hour_start(hour)).total_seconds())
                expected *= 1 - first_second / 3600
            views = poisson(expected, self.chance)
            story.add([self.chance.randrange(first_second, 3600) for _ in range(views)])

    def rate(self, story: Story, hour: int) -> float:
        """Returns the views in that hour which are to be expected of the story."""
        level = self.level[hour - self.hours.start]
        if story.is_old:
            return RATE * story.quality * level
        age = max(0.0, (hour + 0.5) - story.published.timestamp() / 3600)
        return float(RATE * story.quality * level * (1 + age / 4) ** -1.4)

    def store(self) -> None:
        """Writes the stories, and history by the hour."""
        articles = [
            Article(title=f"Story {number}", published_at=None if one.is_old else one.published)
            for number, one in enumerate(self.stories)
        ]
        Article.objects.bulk_create(articles)
        rows = []
        for article, story in zip(articles, self.stories, strict=True):
            story.subject = subject_of(article)
            if not story.is_old:  # nobody compares with them
                by_hour = {
                    story.first_hour + number: story.views_of(story.first_hour + number)
                    for number in range(len(story.minutes) // 60)
                }
                rows += _rows(story.subject, by_hour)
        of_site = {hour: self.site_minutes(hour * 60, hour * 60 + 60) for hour in self.hours}
        rows += _rows(LABEL, of_site)
        History.objects.bulk_create(rows, batch_size=5000)

    def site_minutes(self, since: int, until: int) -> int:
        """Returns the views of the site in these minutes (since 1970)."""
        start = self.hours.start * 60
        return sum(self._site[since - start : until - start])

    def viewed(self, hour: int) -> list[Story]:
        """Returns the stories that may be viewed in that hour."""
        return [story for story in self.stories if story.is_viewed(hour)]


def _rows(subject: str, by_hour: Mapping[int, int]) -> list[History]:
    total = 0
    rows = []
    for hour in sorted(by_hour):
        if by_hour[hour]:
            total += by_hour[hour]
            rows.append(History(subject=subject, hour=hour, views=total, visitors=0))
    return rows


def poisson(mean: float, chance: random.Random) -> int:
    """Returns a number of a Poisson distribution."""
    if mean > 30:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    limit = math.exp(-mean)
    number = 0
    product = chance.random()
    while product > limit:
        number += 1
        product *= chance.random()
    return number


@dataclass(frozen=True, slots=True)
class Known:
    """What a full flush has computed by then."""

    kind: Kind
    week: Bands
    levels: Mapping[int, float]


def usual_at(at: datetime) -> Known:
    """Computes what is usual, as a full flush does at that time."""
    Usual.objects.all().delete()
    usual_renewal.renew(at=at, faults=Faults())
    names = [name_of(LABEL), name_of_gains(LABEL), name_of_week()]
    bands = usual.stored(AskedUsual(names)).bands
    assert {*bands} == {*names}
    assert len(bands[name_of_week()]) >= usual.HOURS_OF_WEEK
    week = bands[name_of_week()]
    kind = Kind(bands[name_of(LABEL)], bands[name_of_gains(LABEL)])
    return Known(kind, week, levels_of(week))
