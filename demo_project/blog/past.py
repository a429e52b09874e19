"""A year of views that might have been, on the scale of the simulated visitors. Each run of the same
hour makes the same numbers.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from itertools import accumulate
from math import cos, exp, pi, sqrt
from random import Random
from typing import NamedTuple

from demo_project.traffic.visitor import CURIOUS, appeal
from readtrack import buckets
from readtrack.hits.hit import Reason
from readtrack.hits.stages import BINS, ENGAGED, READS, SEEN
from readtrack.numbers import sources
from readtrack.numbers.sql.day_visitors import block_start

DAYS = 365
#: Views of an ordinary day, after half a year. Today has more than half as many again: some 1,600 an
#: hour, as the simulated visitors have at their usual rate.
AUDIENCE = 24_000
WEEK = (1.15, 1.2, 1.15, 1.1, 1.0, 0.7, 0.8)  # from Monday
#: By the hour (UTC). Nobody sleeps for long, because the simulated visitors do not sleep at all.
HOURS = (4, 3, 3, 3, 3, 4, 5, 6, 8, 9, 8, 7, 7, 7, 7, 7, 7, 8, 9, 9, 8, 7, 6, 5)
HOURLY = 3  # the last days that have a row for each hour
HOURLY_OF_NEWS = 7  # the first days of each story that have them, too: its page leads to these days
#: How many days ago the days were that have hours, too: the periods that the dashboard compares with those up to now
#: end within these days, at the same time of day.
COMPARED = frozenset({7, 28, 90})
#: The last days of which the sources, devices and countries of each story are known: 90, and the 90 before.
DAYS_OF_VALUES = 181
HOURLY_OF_ALL = 60  # the last days that have a row for each hour of all stories together
DAILY = 60  # days, up to today, of which each story has its visitors by day
BLOCK = 16  # days of which a story mostly has its visitors together before that
VIRAL = 170  # days ago
VIRAL_VIEWS = (90_000, 54_000, 20_000, 8_000, 3_000)  # of that day and the days after it
CAMPAIGN = range(106, 121)  # days ago: a newsletter for one section
CAMPAIGN_SECTION = 2
CAMPAIGN_TIMES = 4  # views that come from the newsletter for each other view of its section
#: Views, by days ago, that one site brought an old story beside its ordinary ones.
LINKED = {5: 5_600, 4: 4_000, 3: 2_600, 2: 1_300}
LINKED_FROM = "news.google.com"
#: The same of an old story that all of its sources brought views.
SHARED = {5: 4_000, 4: 3_400, 3: 2_400, 2: 1_700}

SOURCES = {
    sources.DIRECT: 40,
    "www.google.com": 20,
    "duckduckgo.com": 20,
    "news.ycombinator.com": 20,
}
NEWSLETTER = "newsletter.example"
NEWSLETTER_CAMPAIGN = "newsletter / email / sections"
DEVICES = {"phone": 50, "desktop": 50}
COUNTRIES = {"DE": 30, "US": 18, "GB": 14, "FR": 10, "ES": 8, "PL": 6, "BR": 5, "JP": 4}
NEW = 0.94  # share of a story's views by visitors who have not viewed it before
CONVERTED = 0.01  # share of views that lead to the last stage of the funnel
READING_TIME = 30  # seconds that a text takes
MORE_TIME = 25  # seconds more that whoever has read a text stays, on average
TELLING = 0.8  # share of views whose script tells of its reading
#: Hits that did not count on an ordinary day.
REFUSED: Mapping[Reason, int] = {
    "bot": 2400,
    "agent": 720,
    "repeat": 960,
    "honeypot": 480,
    "prefetch": 360,
    "embed": 180,
    "rate": 120,
}
REFUSED_AT_ONCE = 30  # on average


class Story(NamedTuple):
    """A post: the number of its page, that of its section, and when it was published."""

    pk: int
    section: int
    published: datetime

    @property
    def weights_of_sources(self) -> Mapping[str, float]:
        """The weights of the sources that its views come from. Each source likes other stories."""
        return _weights_of_sources(self.pk)

    @property
    def share_of_readers(self) -> float:
        """The share of those who begin the text and reach its end. Few read a dull one so far."""
        return Random(f"text {self.pk}").uniform(0.15, 0.75)


@cache
def _weights_of_sources(pk: int) -> Mapping[str, float]:
    """Returns the weights of the sources of the story with that primary key."""
    rng = Random(f"sources {pk}")
    return {source: weight * rng.paretovariate(1.5) for source, weight in SOURCES.items()}


class Gain(NamedTuple):
    """What a story gained in an hour, or in a day whose last hour it is. Hours are since 1970."""

    story: Story
    hour: int
    is_day: bool
    views: int
    visitors: int  # who had not viewed the story before
    engaged: int  # views whose script told of reading
    reads: int
    guests: "Guests"

    @property
    def seen(self) -> int:
        """Returns how many views were seen: a sixteenth were robots or had no JavaScript."""
        return max(self.engaged, self.views - self.views // 16)

    @property
    def weights_of_sources(self) -> Mapping[str, float]:
        """The weights of the sources that the views come from."""
        of_story = self.story.weights_of_sources
        if not self.guests.times:
            return of_story
        return {**of_story, self.guests.source: self.guests.times * sum(of_story.values())}


class Guests(NamedTuple):
    """Views from a source that a story usually has none from."""

    source: str = ""
    times: float = 0.0  # so many of them for each other view


NO_GUESTS = Guests()


def gains(stories: Sequence[Story], *, now: datetime) -> Iterator[Gain]:
    """Yields what the stories gained in the year until now, oldest first."""
    rng = Random(2026)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    appeals = {story: appeal(f"/post/{story.pk}/") for story in stories}
    viral_story = stories[len(stories) * 4 // 5]  # the list begins with the newest: nine months old
    linked_story = stories[len(stories) * 2 // 5]
    shared_story = stories[len(stories) * 3 // 5]
    for days_ago in range(DAYS, -1, -1):
        day = today - timedelta(days=days_ago)
        views = _expected_views(appeals, day, days_ago=days_ago)
        if 0 <= VIRAL - days_ago < len(VIRAL_VIEWS):
            views[viral_story] += VIRAL_VIEWS[VIRAL - days_ago]
        if days_ago in SHARED:
            views[shared_story] += SHARED[days_ago]
        for story, ordinary in views.items():
            expected = ordinary
            guests = NO_GUESTS
            if _is_campaign(story, days_ago):
                guests = Guests(NEWSLETTER, CAMPAIGN_TIMES)
            if story == linked_story and days_ago in LINKED:
                expected += LINKED[days_ago]
                guests = Guests(LINKED_FROM, LINKED[days_ago] / ordinary)
            is_day = not _is_hourly(story, day, today=today)
            if is_day:
                expected_by_hour = {buckets.hour_index(day) + 23: expected}
            else:
                expected_by_hour = _by_hour_of_day(story, expected, day=day, now=now)
            for hour, number in expected_by_hour.items():
                viewed = round(rng.gauss(number, sqrt(number)))
                if viewed > 0:
                    yield _gain(story, hour, viewed, rng, is_day=is_day, guests=guests)


def _expected_views(
    appeals: Mapping[Story, float], day: datetime, *, days_ago: int
) -> dict[Story, float]:
    """Returns the views of the stories that were published by the end of the day."""
    weights = {}
    for story, weight in appeals.items():
        if story.published >= day + buckets.DAY:
            continue
        weights[story] = weight * _freshness(story, day)
        if _is_campaign(story, days_ago):
            weights[story] *= 5
    audience = _audience(day, days_ago=days_ago)
    whole = sum(weights.values())
    return {story: audience * weight / whole for story, weight in weights.items()}


def _is_campaign(story: Story, days_ago: int) -> bool:
    return days_ago in CAMPAIGN and story.section == CAMPAIGN_SECTION


def _audience(day: datetime, *, days_ago: int) -> float:
    """Returns the views of all stories on a day."""
    season = 1 + 0.25 * cos(2 * pi * (day.timetuple().tm_yday - 15) / 365)
    growth = 1.6 - 1.2 * days_ago / DAYS
    return AUDIENCE * WEEK[day.weekday()] * season * growth


def _freshness(story: Story, at: datetime) -> float:
    age = max(0.0, (at - story.published) / buckets.DAY)
    return exp(-age / 5) + 0.03


def _is_hourly(story: Story, day: datetime, *, today: datetime) -> bool:
    """Returns True if history has a row of the story for each hour of that day."""
    is_young = day < story.published + HOURLY_OF_NEWS * buckets.DAY
    days_ago = (today - day).days
    is_recent = days_ago < HOURLY or days_ago in COMPARED
    return is_young or is_recent


def _by_hour_of_day(
    story: Story, views: float, *, day: datetime, now: datetime
) -> dict[int, float]:
    """Returns the expected views of each hour of a day, from the story's publication until now."""
    views_by_hour = {}
    for hour, weight in enumerate(HOURS, start=buckets.hour_index(day)):
        start = buckets.hour_start(hour)
        if story.published < start < now:
            share_of_hour = min(1.0, (now - start) / buckets.HOUR)
            views_by_hour[hour] = share_of_hour * views * weight / sum(HOURS)
    return views_by_hour


def _gain(
    story: Story, hour: int, views: int, rng: Random, *, is_day: bool, guests: Guests
) -> Gain:
    engaged = _drawn(views, TELLING, rng)
    return Gain(
        story=story,
        hour=hour,
        is_day=is_day,
        views=views,
        visitors=_drawn(views, NEW, rng),
        engaged=engaged,
        reads=_drawn(engaged, story.share_of_readers, rng),
        guests=guests,
    )


def by_hour(gained: Iterable[Gain], *, now: datetime) -> dict[int, Counter[str]]:
    """Returns the views, visitors, seen views and reads of all stories by hour (since 1970).

    A day whose gains have no hours is divided among its hours if it is one of the last days.
    """
    first_hourly = buckets.hour_index(now) - 24 * HOURLY_OF_ALL
    numbers: defaultdict[int, Counter[str]] = defaultdict(Counter)
    days: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for gain in gained:
        is_divided = gain.is_day and gain.hour > first_hourly
        place = days[gain.hour] if is_divided else numbers[gain.hour]
        place["views"] += gain.views
        place["visitors"] += gain.visitors
        place["reads"] += gain.reads
        place["seen"] += gain.seen
    for last_hour, numbers_of_day in days.items():
        first_hour = last_hour - 23
        for name, number in numbers_of_day.items():
            passed = 0
            for hour, weight in enumerate(accumulate(HOURS), start=first_hour):
                until_hour = number * weight // sum(HOURS)
                numbers[hour][name] += until_hour - passed
                passed = until_hour
    return dict(sorted(numbers.items()))


def visitors_by_block(gained: Iterable[Gain], *, now: datetime) -> Counter[tuple[Story, date, int]]:
    """Returns the visitors of each story by day, and of earlier days mostly by the block: by story,
    first day and number of days.
    """
    first_daily = block_start(now.date() - timedelta(days=DAILY), length=BLOCK)
    first_days: dict[Story, date] = {}
    for gain in gained:
        day = buckets.hour_start(gain.hour).date()
        first_days[gain.story] = min(day, first_days.get(gain.story, day))
    visitors = Counter[tuple[Story, date, int]]()
    for gain in gained:
        day = buckets.hour_start(gain.hour).date()
        block = block_start(day, length=BLOCK)
        # A period that begins at the publication would leave out a block that began before it.
        if day >= first_daily or block < first_days[gain.story]:
            visitors[gain.story, day, 1] += gain.visitors
        else:
            visitors[gain.story, block, BLOCK] += gain.visitors
    return visitors


def _drawn(number: int, share: float, rng: Random) -> int:
    """Returns how many of a number are drawn, if each one is drawn with that probability."""
    drawn = round(rng.gauss(number * share, sqrt(number * share * (1 - share))))
    return min(max(drawn, 0), number)


def breakdowns(some_gains: Iterable[Gain], rng: Random) -> Counter[tuple[str, str]]:
    """Returns by how much the gains raised each field, by kind and field."""
    views_by_sources = Counter[tuple[tuple[str, float], ...]]()
    views = 0
    for gain in some_gains:
        views_by_sources[tuple(gain.weights_of_sources.items())] += gain.views
        views += gain.views
    fields = Counter[tuple[str, str]]()
    for weights, views_with_sources in views_by_sources.items():
        _divide(fields, "views:referrer", views_with_sources, dict(weights), rng)
    _add_channels(fields)
    _divide(fields, "views:device", views, DEVICES, rng)
    _divide(fields, "views:country", views, COUNTRIES, rng)
    fields["funnel", "view"] = views
    clicks = _drawn(views, CURIOUS, rng)
    fields["funnel", "click"] = clicks
    fields["funnel", "convert"] = _drawn(clicks, CONVERTED / CURIOUS, rng)
    return +fields


def _add_channels(fields: Counter[tuple[str, str]]) -> None:
    """Adds the channels and campaigns of the sources that the fields have."""
    for (kind, source), count in [*fields.items()]:
        if kind != "views:referrer":
            continue
        channel = sources.channel_of_host(source)
        if source == sources.DIRECT:
            channel = sources.DIRECT
        if source == NEWSLETTER:
            channel = sources.MAIL
            fields["views:campaign", NEWSLETTER_CAMPAIGN] += count
        fields["views:channel", channel] += count


def _divide(
    fields: Counter[tuple[str, str]],
    kind: str,
    views: int,
    weights: Mapping[str, float],
    rng: Random,
) -> None:
    """Adds the views to the fields of a kind, by their weights."""
    views_left = views
    weight_left = sum(weights.values())
    for field, weight in weights.items():
        share = min(1.0, weight / weight_left)  # floats do not add up exactly
        count = _drawn(views_left, share, rng)
        fields[kind, field] += count
        views_left -= count
        weight_left -= weight


def reading(story: Story, *, seen: int, engaged: int, reads: int) -> dict[str, int]:
    """Returns how many views of a story lasted how long, by the fields of readtrack's `reading`."""
    fields = {SEEN: seen, ENGAGED: engaged, READS: reads}
    for seconds in BINS:
        if seconds < READING_TIME:
            fields[str(seconds)] = reads + round((engaged - reads) * (1 - seconds / READING_TIME))
        else:
            fields[str(seconds)] = round(reads * exp((READING_TIME - seconds) / MORE_TIME))
    return fields


def refusals(now: datetime) -> Iterator[tuple[Reason, datetime, int]]:
    """Yields the reasons and times of hits in the last two days that did not count, and how many
    there were at that time.
    """
    rng = Random(2028)
    for reason, number in REFUSED.items():
        for _ in range(2 * number // REFUSED_AT_ONCE):
            at = now - timedelta(hours=rng.uniform(0, 47))
            yield reason, at, rng.randrange(1, 2 * REFUSED_AT_ONCE)
