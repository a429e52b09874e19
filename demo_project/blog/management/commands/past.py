"""`manage.py past`: a year of views, taken over out of a log as from any site before readtrack. Once only."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils import timezone

from demo_project.blog.models import Post
from demo_project.blog.past import Story, tallied, visits
from readtrack.models import Breakdown
from readtrack.subjects import subject_column, subject_of_row


class Command(BaseCommand):
    """Adds the past of the newsroom."""

    help = "Adds a year of views to the demo's posts, unless they have views."

    def handle(self, *args: Any, **options: Any) -> None:
        if Post.objects.filter(view_count__gt=0).exists():
            return
        found = list(
            visits(
                [Story(*row) for row in Post.objects.values_list("pk", "category", "published_at")], now=timezone.now()
            )
        )
        with TemporaryDirectory() as folder:
            log = Path(folder, "access.log")
            log.write_text("".join(map(str, found)))
            call_command("readtrack", "import", str(log), verbosity=options["verbosity"])
        # A log names no devices and countries. What else Redis counts is stored here, from where Redis gets it back.
        Breakdown.objects.bulk_create(
            Breakdown(subject=subject_column(subject_of_row(Post, story.pk)), kind=kind, field=field, count=count)
            for (story, kind, field), count in tallied(found).items()
        )
        self.stdout.write(f"Imported {len(found)} visits of a year.")
