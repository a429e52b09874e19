"""`manage.py past`: a year of views, as if the site had counted them. Once only."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connections, transaction
from django.utils import timezone

from demo_project.blog import bulk
from demo_project.blog.models import Category, Post
from demo_project.blog.past import (
    CAMPAIGN,
    DAYS_OF_VALUES,
    VIRAL,
    Gain,
    Story,
    breakdowns,
    by_hour,
    gains,
    reading,
    refusals,
)
from demo_project.blog.past_visitors import add_visitors
from demo_project.traffic.agents import assistant, robot
from demo_project.traffic.visitor import READERS
from readtrack import buckets, tracker
from readtrack.numbers import notes
from readtrack.numbers.models import Breakdown, BreakdownHistory, DayBreakdown, DayVisitors, History
from readtrack.numbers.sql.history import of_reads, of_stage
from readtrack.store import keys
from readtrack.store.skips import skip_buffer
from readtrack.subjects import label_of, subject_column, subject_of_row

HistoryRow = tuple[str, int, int, int]  # subject, hour, views and visitors

NOTES = {
    CAMPAIGN[-1]: "Newsletter: two weeks of this section",
    VIRAL: "A story is passed on everywhere",
    2: "Deployed 1.2",
}


class Command(BaseCommand):
    """Adds the past of the newsroom."""

    help = "Adds a year of views to the demo's posts, unless they have views."

    def handle(self, *args: Any, **options: Any) -> None:
        if Post.objects.filter(view_count__gt=0).exists():
            return
        now = timezone.now()
        stories = [
            Story(*row) for row in Post.objects.values_list("pk", "category", "published_at")
        ]
        gained = list(gains(stories, now=now))
        bulk.store_uncompressed(DayVisitors, "sketch")
        with ThreadPoolExecutor(max_workers=1) as other_thread:
            # Redis unites the visitors while Python adds up the breakdowns.
            visitors = other_thread.submit(_add_visitors, gained, now=now)
            with transaction.atomic():
                _add_breakdowns(gained, now=now)
        with transaction.atomic():
            _add_history(gained, visitors.result(), now=now)
        _add_refusals_and_readers(now)
        for days_ago, text in NOTES.items():
            notes.note(text, at=now - timedelta(days=days_ago))
        # Redis gets from SQL what it counts. The lists of the most viewed are made, and views are
        # added up by category, author and age.
        call_command("readtrack", "flush", verbosity=0)
        call_command("burst", verbosity=0, stdout=self.stdout)
        views = sum(gain.views for gain in gained)
        self.stdout.write(f"Added {views} views of a year.")


def _add_visitors(gained: Sequence[Gain], *, now: datetime) -> dict[Story, int]:
    """Does what `add_visitors` does in a thread, whose connections nobody else closes."""
    try:
        return add_visitors(gained, now=now)
    finally:
        connections.close_all()


def _by_story(gained: Iterable[Gain]) -> dict[Story, list[Gain]]:
    """Returns the gains of each story, oldest first."""
    by_story = defaultdict[Story, list[Gain]](list)
    for gain in gained:
        by_story[gain.story].append(gain)
    return by_story


def _add_history(
    gained: Sequence[Gain], visitors_by_story: Mapping[Story, int], *, now: datetime
) -> None:
    """Stores the views, visitors and reads of posts and of all posts together, with their history.

    A story has the visitors that its days have together, so that all pages show the same number.
    """
    rows = []
    posts = []
    for story, gains_of_story in _by_story(gained).items():
        subject = subject_of_row(Post, story.pk)
        all_visitors = visitors_by_story.get(story, 0)
        first_visits = sum(gain.visitors for gain in gains_of_story)
        views, visits, visitors, seen, engaged, reads = 0, 0, 0, 0, 0, 0
        for gain in gains_of_story:
            views += gain.views
            visits += gain.visitors
            visitors = all_visitors * visits // max(1, first_visits)
            rows.append(_row(subject, gain.hour, views, visitors))
            seen += gain.seen
            rows.append(_row(of_stage("seen", subject), gain.hour, seen))
            engaged += gain.engaged
            rows.append(_row(of_stage("engaged", subject), gain.hour, engaged))
            if gain.reads:
                reads += gain.reads
                rows.append(_row(of_reads(subject), gain.hour, reads))
        posts.append(Post(pk=story.pk, view_count=views, visitor_count=visitors))
    rows += _rows_of_all(gained, now=now)
    bulk.insert(History, ("subject", "hour", "views", "visitors"), rows)
    Post.objects.bulk_update(posts, ["view_count", "visitor_count"])


def _rows_of_all(gained: Iterable[Gain], *, now: datetime) -> list[HistoryRow]:
    """Returns the history of all posts together."""
    label = label_of(Post)
    totals = Counter[str]()
    rows = []
    for hour, numbers in by_hour(gained, now=now).items():
        totals += numbers
        rows.append(_row(f"{label}{keys.tags()[0]}", hour, totals["views"]))
        rows.append(_row(of_reads(label), hour, totals["reads"]))
        rows.append(_row(of_stage("seen", label), hour, totals["seen"]))
    return rows


def _row(subject: str, hour: int, views: int, visitors: int = 0) -> HistoryRow:
    return subject_column(subject), hour, views, visitors


def _add_breakdowns(gained: Sequence[Gain], *, now: datetime) -> None:
    """Stores sources, devices, countries, funnels and times of reading.

    Those of a story, of its days, and of all stories by the hour are sums of the same numbers.
    """
    rng = Random(2027)
    first_day = (now - DAYS_OF_VALUES * buckets.DAY).date()
    totals = []
    days = []
    by_hour_of_all = defaultdict[int, Counter[tuple[str, str]]](Counter)
    for story, gains_of_story in _by_story(gained).items():
        subject = subject_column(subject_of_row(Post, story.pk))
        engaged = sum(gain.engaged for gain in gains_of_story)
        reads = sum(gain.reads for gain in gains_of_story)
        seen = sum(gain.seen for gain in gains_of_story)
        fields = Counter[tuple[str, str]]()
        fields_by_day = defaultdict[date, Counter[tuple[str, str]]](Counter)
        for gain in gains_of_story:
            fields_of_hour = breakdowns([gain], rng)
            by_hour_of_all[gain.hour].update(fields_of_hour)
            fields_by_day[buckets.local_day(gain.hour)].update(fields_of_hour)
        for day, fields_of_day in fields_by_day.items():
            fields.update(fields_of_day)
            if day < first_day:
                continue
            for (kind, field), count in fields_of_day.items():
                days.append((subject, kind, day, field, count))
        for field, count in reading(story, seen=seen, engaged=engaged, reads=reads).items():
            fields["reading", field] = count
        for (kind, field), count in fields.items():
            totals.append((subject, kind, field, count))
    bulk.insert(Breakdown, ("subject", "kind", "field", "count"), totals)
    bulk.insert(DayBreakdown, ("subject", "kind", "day", "field", "count"), days)
    _add_hours(by_hour_of_all)


def _add_hours(fields_by_hour: Mapping[int, Counter[tuple[str, str]]]) -> None:
    """Stores the sources, devices, countries and funnels of all stories together."""
    rows = []
    for hour, fields_of_hour in fields_by_hour.items():
        for (kind, field), count in fields_of_hour.items():
            rows.append((label_of(Post), kind, hour, field, count))
    bulk.insert(BreakdownHistory, ("subject", "kind", "hour", "field", "count"), rows)


def _add_refusals_and_readers(now: datetime) -> None:
    rng, sections = Random(2029), Category.objects.all()
    for reason, at, number in refusals(now):
        refused_views = map(str, range(number))
        agent = assistant(rng) if reason == "agent" else robot(rng)
        tracker.skip(refused_views, reason, is_alone=False, at=at, agent=agent)
        skip_buffer.send_rest()  # at once, because few names wait at a time
    for user in User.objects.filter(
        username__in=[f"reader{number}" for number in READERS]
    ).order_by("pk"):
        tracker.mark_read(
            user, [section for section in sections if rng.random() < 0.9 - section.pk % 8 / 10]
        )
