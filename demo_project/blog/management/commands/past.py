"""`manage.py past`: a year of views, taken over out of a log as from any site before readtrack.
Once only.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils import timezone

from demo_project.blog.models import Category, Post
from demo_project.blog.past import (
    CAMPAIGN,
    VIRAL,
    Curve,
    Story,
    Visit,
    curves,
    refusals,
    tallied,
    visits,
)
from demo_project.traffic.agents import robot
from demo_project.traffic.visitor import READERS
from readtrack import buckets, tracker
from readtrack.models import Breakdown, BreakdownHistory, History, Note
from readtrack.sql.history import of_reads
from readtrack.store.skips import skip_buffer
from readtrack.subjects import label_of, subject_column, subject_of_row

WEEK = 7  # days
NOTES = {
    CAMPAIGN[-1]: "Newsletter: two weeks of this section",
    VIRAL: "A story is passed on everywhere",
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
        found = list(visits(stories, now=now))
        with TemporaryDirectory() as folder:
            log = Path(folder, "access.log")
            log.write_text("".join(map(str, found)))
            call_command("readtrack", "import", str(log), verbosity=options["verbosity"])
        _add_what_no_log_tells(found)
        _add_refusals_and_readers(now)
        Note.objects.bulk_create(
            Note(day=timezone.localdate(now - timedelta(days=ago)), text=text)
            for ago, text in NOTES.items()
        )
        call_command(
            "readtrack", "flush", verbosity=0
        )  # adds up the visitors and reads of all posts
        self.stdout.write(f"Imported {len(found)} visits of a year.")


def _add_what_no_log_tells(found: Sequence[Visit]) -> None:
    """Stores devices, countries, funnels, visitors by the hour and reads. From here Redis gets back
    what it counts.
    """
    totals, gains = Counter[tuple[str, str, str]](), Counter[tuple[int, str, str]]()
    recent = buckets.hour_index(max(visit.at for visit in found)) - 24 * WEEK
    for (story, hour, kind, field), count in tallied(found).items():
        totals[subject_column(subject_of_row(Post, story.pk)), kind, field] += count
        # As thinned history, or the demo would begin with 100,000 rows: by the day, the last days
        # by the hour.
        gains[hour if hour > recent else hour // 24 * 24, kind, field] += (
            count if kind != "reading" else 0
        )
    Breakdown.objects.bulk_create(
        Breakdown(subject=subject, kind=kind, field=field, count=count)
        for (subject, kind, field), count in totals.items()
    )
    BreakdownHistory.objects.bulk_create(
        BreakdownHistory(subject=label_of(Post), kind=kind, hour=hour, field=field, count=count)
        for (hour, kind, field), count in (+gains).items()
    )
    drawn = curves(found)
    rows = [*_visits(drawn), *_reads(drawn)]
    fields = ("subject", "hour")
    History.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=fields, update_fields=["visitors"]
    )


def _visits(drawn: Mapping[Story, Curve]) -> list[History]:
    """Returns the rows of the import, with the visitors that it adds at the end only."""
    counted = dict(Post.objects.values_list("pk", "visitor_count"))
    rows = []
    for story, curve in drawn.items():
        subject, last = (
            subject_column(subject_of_row(Post, story.pk)),
            max(curve.visits.values())[1],
        )
        for hour, (views, visitors) in curve.visits.items():
            # Redis's sketch knows their number to one per cent.
            rows.append(
                History(
                    subject=subject,
                    hour=hour,
                    views=views,
                    visitors=visitors * counted[story.pk] // last,
                )
            )
    return rows


def _reads(drawn: Mapping[Story, Curve]) -> list[History]:
    return [
        History(
            subject=subject_column(of_reads(subject_of_row(Post, story.pk))),
            hour=hour,
            views=reads,
            visitors=0,
        )
        for story, curve in drawn.items()
        for hour, reads in curve.reads.items()
    ]


def _add_refusals_and_readers(now: datetime) -> None:
    rng, sections = Random(2029), Category.objects.all()
    for reason, at in refusals(now):
        tracker.skip([""], reason, is_alone=False, at=at, agent=robot(rng))
        skip_buffer.send_rest()  # at once, because few names wait at a time
    for user in User.objects.filter(
        username__in=[f"reader{number}" for number in READERS]
    ).order_by("pk"):
        tracker.mark_read(
            user, [section for section in sections if rng.random() < 0.9 - section.pk % 8 / 10]
        )
