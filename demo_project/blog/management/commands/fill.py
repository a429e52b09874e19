"""`manage.py fill`: all that the newsroom begins with, in one process, which takes less time than three."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Fills the database and Redis."""

    help = "Makes the tables, and adds the demo's readers, posts and a year of views."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-past", action="store_true", help="no year of views")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        call_command("seed", stdout=self.stdout)
        if not options["no_past"]:
            call_command("past", stdout=self.stdout)
