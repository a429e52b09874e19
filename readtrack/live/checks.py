"""The check of the setting LIVE."""

from django.core import checks

from readtrack.live import options


def check_setting() -> list[checks.CheckMessage]:
    """Checks that LIVE has a path of the site."""
    return [
        checks.Error(
            f"READTRACK['LIVE'] cannot be used: {problem}.",
            hint="Give it {'events': '/events/'}, or leave it out: then pages only poll.",
            id="readtrack.E095",
        )
        for problem in options.problems()
    ]
