"""A year of visits that might have been, as lines of a web server's log: each run of the same day
makes the same.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from math import cos, exp, pi
from random import Random
from typing import NamedTuple

from demo_project.traffic import agents
from demo_project.traffic.visitor import REFERRERS, appeal
from readtrack import buckets
from readtrack.hits import sources
from readtrack.hits.hit import Reason
from readtrack.hits.reading import BINS, ENGAGED, READ

DAYS = 365
AUDIENCE = 24  # views of an ordinary day, after half a year
WEEK = (1.15, 1.2, 1.15, 1.1, 1.0, 0.7, 0.8)  # from Monday
HOURS = (
    2,
    5,
    8,
    6,
    5,
    5,
    7,
    6,
    4,
    4,
    4,
    5,
    7,
    9,
    9,
    7,
    4,
)  # from six in the morning, local to nobody
VIRAL, VIRAL_DAYS = 170, (700, 420, 160, 60, 25)  # days ago, and the views of these days
CAMPAIGN = range(106, 121)  # days ago: a newsletter for one section
NEWSLETTER = "https://newsletter.example/"  # the referrer of its readers
COUNTRIES, SHARES = ("DE", "US", "GB", "FR", "ES", "PL", "BR", "JP"), (30, 18, 14, 10, 8, 6, 5, 4)
ROBOTS = 0.05
READING_TIME, TELLING = (
    30,
    0.8,
)  # seconds that a text takes; the share of visits whose script tells of its reading
# Hits that did not count on an ordinary day, beside the robots of the log.
REFUSED: Mapping[Reason, int] = {
    "bot": 40,
    "agent": 12,
    "repeat": 16,
    "honeypot": 8,
    "prefetch": 6,
    "embed": 3,
    "rate": 2,
}


class Story(NamedTuple):
    """A post: the number of its page, that of its section, and when it was published."""

    pk: int
    section: int
    published: datetime


class Visit(NamedTuple):
    """One line of the log, and what the line does not tell."""

    story: Story
    at: datetime
    address: str
    agent: str
    referrer: str
    country: str
    is_robot: bool
    seconds: int  # in which the text was looked at, as far as a script told

    @property
    def is_read(self) -> bool:
        return self.seconds >= READING_TIME

    def __str__(self) -> str:
        request = f'"GET /post/{self.story.pk}/ HTTP/1.1" 200 6500 "{self.referrer or "-"}" "{self.agent}"'
        return f"{self.address} - - [{self.at:%d/%b/%Y:%H:%M:%S +0000}] {request}\n"

    def tallies(self, rng: Random) -> Iterator[tuple[str, str]]:
        """Yields what the visit adds to: the hash, and its field."""
        yield "views:device", "phone" if "Mobile" in self.agent else "desktop"
        host = self.referrer.strip("/").rpartition("/")[2]
        is_newsletter = self.referrer == NEWSLETTER
        yield "views:referrer", host or sources.DIRECT
        if is_newsletter:
            yield "views:channel", sources.MAIL
            yield "views:campaign", "newsletter / email / sections"
        else:
            yield "views:channel", sources.channel_of_host(host) if host else sources.DIRECT
        yield "views:country", self.country
        yield "funnel", "view"
        if (luck := rng.random()) < 0.06:
            yield "funnel", "click"
        if luck < 0.01:
            yield "funnel", "convert"
        if self.seconds:
            yield "reading", ENGAGED
            yield from (("reading", str(least)) for least in BINS if self.seconds >= least)
        if self.is_read:
            yield "reading", READ


def visits(stories: Sequence[Story], *, now: datetime) -> Iterator[Visit]:
    """Yields the visits of the year before the present hour, oldest first. No two of a day (UTC)
    are repeats.
    """
    rng, today = Random(2026), now.replace(hour=0, minute=0, second=0, microsecond=0)
    browsers = [agents.person(rng) for _ in range(100)]  # to judge a new one takes time
    people = [
        (f"198.18.{rng.randrange(256)}.{rng.randrange(256)}", rng.choice(browsers))
        for _ in range(6000)
    ]
    appeals = {story: appeal(f"/post/{story.pk}/") for story in stories}
    hit = stories[
        len(stories) * 4 // 5
    ]  # late in the list, which begins with the newest: some nine months old
    hour = now.replace(minute=0, second=0, microsecond=0)
    for ago in range(DAYS, -1, -1):
        day = today - timedelta(days=ago)
        season = 1 + 0.25 * cos(2 * pi * (day.timetuple().tm_yday - 15) / 365)
        audience = AUDIENCE * WEEK[day.weekday()] * season * (1.6 - 1.2 * ago / DAYS)
        known = [story for story in stories if story.published < day]
        weights = [
            appeals[story]
            * _freshness(story, day)
            * (5 if ago in CAMPAIGN and story.section == 2 else 1)
            for story in known
        ]
        chosen = rng.choices(known, weights, k=round(audience)) if known else []
        if 0 <= VIRAL - ago < len(VIRAL_DAYS):
            chosen += [hit] * VIRAL_DAYS[VIRAL - ago]
        found = _of_a_day(chosen, day, people, rng, is_campaign=ago in CAMPAIGN)
        yield from (visit for visit in found if visit.at < hour)


def _freshness(story: Story, day: datetime) -> float:
    age = max(0.0, (day - story.published).total_seconds() / 86_400)
    return exp(-age / 5) + 0.03


def _of_a_day(
    chosen: Sequence[Story],
    day: datetime,
    people: Sequence[tuple[str, str]],
    rng: Random,
    *,
    is_campaign: bool,
) -> Iterator[Visit]:
    some = rng.sample(people, len(chosen))
    times = sorted(
        day + timedelta(hours=hour, seconds=rng.randrange(3600))
        for hour in rng.choices(range(6, 6 + len(HOURS)), HOURS, k=len(chosen))
    )
    for story, (address, agent), at in zip(chosen, some, times, strict=True):
        robot = rng.random() < ROBOTS
        referrer = NEWSLETTER if is_campaign and story.section == 2 else rng.choice(REFERRERS)
        country = rng.choices(COUNTRIES, SHARES)[0]
        seconds = _seconds(story, rng) if rng.random() < TELLING else 0
        yield Visit(
            story,
            at,
            address,
            agents.robot(rng) if robot else agent,
            referrer,
            country,
            robot,
            seconds,
        )


def _seconds(story: Story, rng: Random) -> int:
    """Returns how long the text holds a reader (s): few read a dull one to its end."""
    if rng.random() < Random(f"text {story.pk}").uniform(0.15, 0.75):
        return READING_TIME + int(rng.expovariate(1 / 25))
    return rng.randrange(1, READING_TIME)


def tallied(found: Sequence[Visit]) -> Counter[tuple[Story, int, str, str]]:
    """Returns how many visits of people each value of a breakdown and each stage of a funnel had in
    each hour.
    """
    rng, people = (
        Random(2027),
        [(visit, buckets.hour_index(visit.at)) for visit in found if not visit.is_robot],
    )
    return Counter(
        (visit.story, hour, *tally) for visit, hour in people for tally in visit.tallies(rng)
    )


class Curve(NamedTuple):
    """What a story had at the end of each hour (since 1970) that added to it."""

    visits: dict[int, tuple[int, int]]  # views and visitors
    reads: dict[int, int]


def curves(found: Iterable[Visit]) -> dict[Story, Curve]:
    """Returns the absolute counts of each story by the hour, of people only."""
    seen = defaultdict[Story, set[tuple[str, str]]](set)
    views, reads = Counter[Story](), Counter[Story]()
    drawn = defaultdict[Story, Curve](lambda: Curve({}, {}))
    for visit in found:
        if visit.is_robot:
            continue
        story, hour = visit.story, buckets.hour_index(visit.at)
        views[story] += 1
        seen[story].add((visit.address, visit.agent))
        drawn[story].visits[hour] = views[story], len(seen[story])
        if visit.is_read:
            reads[story] += 1
            drawn[story].reads[hour] = reads[story]
    return drawn


def refusals(now: datetime) -> Iterator[tuple[Reason, datetime]]:
    """Yields the hits of the last two days that did not count, by the reasons that a log does not
    tell.
    """
    rng = Random(2028)
    for reason, number in REFUSED.items():
        for _ in range(2 * number):
            yield reason, now - timedelta(hours=rng.uniform(0, 47))
