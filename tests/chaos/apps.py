"""Small chunks for the chaos runs, so that a flush has many steps at which it can be killed."""

from django.apps import AppConfig


class SmallChunksConfig(AppConfig):
    """Lets the processes of a chaos run flush few totals at once."""

    name = "tests.chaos"

    def ready(self) -> None:
        from readtrack.flush import run

        run.TOTALS_AT_ONCE = 8
