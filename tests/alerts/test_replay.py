"""Ordinary weeks, with noise, nights, weekends and holidays, are replayed minute by minute: no alert.
Then something happens in them: one alert.

`READTRACK_DEEP=7 python3 manage.py test tests/alerts/test_replay.py` replays a whole year.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.db import transaction

from readtrack import buckets
from readtrack.alerts import conditions
from readtrack.alerts.options import DEFAULTS
from readtrack.numbers import usual_now
from readtrack.numbers.sql.usual_week import slot_of
from tests.support import replay
from tests.support.depth import DEEP, examples
from tests.support.replay import TICK, Known, Past, Story, poisson

pytestmark = [pytest.mark.django_db]

TIMES = DEFAULTS["story"]
LEAST = DEFAULTS["least"]
DIVISOR = DEFAULTS["site_fall"]
WEEKS = min(52, 8 * DEEP) or 2
# Hours between two computations of what is usual; a site's full flushes make one each hour.
RENEWED = 7 * 24 if DEEP else 24
SPIKE = 600  # seconds for which a spike is looked at
# Expected views in three minutes of stories that have spikes. With fewer, five times as many views
# are not told from chance within minutes.
ENOUGH = 8.0


def say(text: str) -> None:
    print(text)  # noqa: T201 - pytest shows it with -s


@dataclass(frozen=True, slots=True)
class Replay:
    """Views, and what was known to be usual in each time of RENEWED hours since the replay began."""

    past: Past
    usual: Sequence[Known]

    def known(self, hour: int) -> Known:
        return self.usual[(hour - self.past.replayed.start) // RENEWED]

    def story(
        self, story: Story, minute: int, *, more: Mapping[int, int] | None = None, early: int = 0
    ) -> usual_now.Story:
        """Returns the numbers of the story as a look in that minute (since 1970) has them.

        `more` has further views by minute, `early` those of the running minute.
        """
        views = story.last_minutes(minute)
        for earlier, number in (more or {}).items():
            if minute - 60 < earlier < minute:
                views[59 - (minute - earlier)] += number
        views[59] += early
        hour = minute // 60
        at = buckets.hour_start(0) + timedelta(minutes=minute, seconds=TICK)
        known = self.known(hour)
        views_by_hour = story.hours(hour)
        return usual_now.story_of(
            views,
            usual_now.Kind() if story.is_old else known.kind,
            levels=known.levels,
            day_before=usual_now.DayBefore(sum(views_by_hour.values()), [*views_by_hour]),
            published=None if story.is_old else story.published,
            at=at,
        )

    def site(self, minute: int, *, share: float = 1.0, since: int = 0) -> conditions.Site:
        """Returns the numbers of the site in that minute. From the minute `since` on it has only this
        share of its views.
        """
        hour = minute // 60
        views = []
        for other in range(hour - 2, hour + 1):
            until = min(minute, other * 60 + 60)
            whole = self.past.site_minutes(other * 60, min(until, max(since, other * 60)))
            fallen = self.past.site_minutes(min(until, max(since, other * 60)), until)
            views.append(whole + round(share * fallen))
        week = self.known(hour).week
        usual = [week[slot_of(other)].usual for other in range(hour - 2, hour + 1)]
        return conditions.Site(views=views, usual=usual, running=(minute - hour * 60) / 60)


@pytest.fixture(scope="module")
def replayed(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Replay:
    """Returns the views, and what full flushes have computed from their history."""
    past = Past(weeks=WEEKS, seed=20_251_126)
    with django_db_blocker.unblock(), transaction.atomic():  # type: ignore[attr-defined]
        past.store()
        starts = [buckets.hour_start(hour) for hour in past.replayed[::RENEWED]]
        usual = [replay.usual_at(start) for start in starts]
        transaction.set_rollback(True)
    return Replay(past, usual)


def looked_at(replayed: Replay) -> Iterator[tuple[Story, int]]:
    """Yields the stories and minutes in which they are looked at closely.

    The other ones have too few views for an alert.
    """
    for hour in replayed.past.replayed:
        for story in replayed.past.viewed(hour):
            for minute in range(hour * 60, hour * 60 + 60):
                is_published = minute * 60 + TICK >= story.published.timestamp()
                is_young = minute * 60 < story.published.timestamp() + 3700
                index = minute - story.first_hour * 60
                recent = sum(story.minutes[max(0, index - 29) : index + 1])
                if is_published and (is_young or recent >= LEAST):
                    yield story, minute


def test_no_alert_comes_in_ordinary_weeks(replayed: Replay) -> None:
    past = replayed.past
    days = [
        number for number in past.holidays if number * 24 >= len(past.hours) - len(past.replayed)
    ]
    assert days  # one day at least is a holiday
    told = []
    closely = 0
    for story, minute in looked_at(replayed):
        closely += 1
        numbers = replayed.story(story, minute)
        excess = conditions.excess_of(numbers, times=TIMES, least=LEAST)
        if excess:
            told.append((story.subject, story.quality, minute, excess, numbers))
    falls = []
    for minute in range(past.replayed.start * 60, past.replayed.stop * 60):
        shortfall = conditions.shortfall_of(replayed.site(minute), divisor=DIVISOR)
        if shortfall:
            falls.append((minute, shortfall))
    hours = sum(len(past.viewed(hour)) for hour in past.replayed)
    say(f"{hours:,} hours of stories, {closely:,} looks, {len(days)} holidays")
    assert told == []
    assert falls == []


def spikes(replayed: Replay, *, number: int, times: float) -> Iterator[tuple[Story, int, float]]:
    """Yields stories, the second (since 1970) at which each begins to have so many times the views,
    and the views in an hour that it has from then on.
    """
    chance = random.Random(1)
    left = number
    while left:
        hour = chance.choice(replayed.past.replayed)
        story = chance.choice(replayed.past.viewed(hour))
        second = hour * 3600 + chance.randrange(3600 - SPIKE)
        is_young = second - story.published.timestamp() < 3900 and not story.is_old
        expected = story.expected[hour - story.first_hour]
        is_poor = story.quality < 1 and not story.is_old  # its usual is that of its kind
        if expected / 20 >= ENOUGH and not is_young and not is_poor:
            left -= 1
            yield story, second, (times - 1) * expected


def seconds_until_told(replayed: Replay, story: Story, second: int, more: float) -> int | None:
    """Returns the seconds from the spike to the alert; None without one."""
    chance = random.Random(second)
    added = Counter[int]()
    early = Counter[int]()
    for after in range(second, second + SPIKE):
        views = poisson(more / 3600, chance)
        added[after // 60] += views
        early[after // 60] += views if after % 60 < TICK else 0
    for tick in range(second // 60 * 60 + TICK, second + SPIKE, 60):
        if tick >= second:
            minute = tick // 60
            numbers = replayed.story(story, minute, more=added, early=early[minute])
            if conditions.excess_of(numbers, times=TIMES, least=LEAST):
                return tick - second
    return None


@pytest.mark.parametrize(("times", "least_share"), [(5, 0.92), (6, 0.98), (8, 1.0)])
def test_a_spike_is_told_within_five_minutes(
    replayed: Replay, times: int, least_share: float
) -> None:
    number = examples(300)
    waited = [
        seconds_until_told(replayed, *spike)
        for spike in spikes(replayed, number=number, times=times)
    ]
    in_time = sorted(seconds for seconds in waited if seconds is not None and seconds <= 300)
    median = in_time[len(in_time) // 2]
    say(f"{times} times: {len(in_time)} of {number} in 300 s, half of them in {median} s")
    assert len(in_time) >= least_share * number


def test_twice_its_views_are_seldom_a_spike(replayed: Replay) -> None:
    number = examples(300)
    waited = [
        seconds_until_told(replayed, *spike) for spike in spikes(replayed, number=number, times=2)
    ]
    told = [seconds for seconds in waited if seconds is not None]
    say(f"{len(told)} of {number} of twice the views are told")
    assert len(told) <= 0.02 * number


@pytest.mark.parametrize(("share_of_usual", "within"), [(0.0, 70), (0.25, 100)])
def test_a_fall_of_the_site_is_told(replayed: Replay, share_of_usual: float, within: int) -> None:
    """A fall at night waits for the morning, when there are enough views to tell."""
    chance = random.Random(2)
    waited: list[int] = []
    while len(waited) < examples(60):
        since = chance.choice(replayed.past.replayed[:-6]) * 60 + chance.randrange(60)
        hour = since // 60
        if slot_of(hour) % 24 in range(8, 20):
            views = replayed.past.site_minutes(hour * 60, hour * 60 + 60)
            usual = replayed.known(hour).week[slot_of(hour)].usual
            share = share_of_usual * min(1.0, usual / views)
            waited.append(_minutes_until_told(replayed, since, share=share))
    in_time = [minutes for minutes in waited if minutes <= within]
    median = sorted(waited)[len(waited) // 2]
    say(f"{len(in_time)} of {len(waited)} falls in {within} minutes, half of them in {median}")
    assert len(in_time) >= 0.95 * len(waited)


def _minutes_until_told(replayed: Replay, since: int, *, share: float) -> int:
    for after in range(240):
        site = replayed.site(since + after, share=share, since=since)
        if conditions.shortfall_of(site, divisor=DIVISOR):
            assert not conditions.is_site_back(site, divisor=DIVISOR)
            return after
    return 240
