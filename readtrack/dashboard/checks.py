"""Check of the dashboard."""

from importlib.util import find_spec

from django.core import checks


def check_package() -> list[checks.CheckMessage]:
    """Checks that the package is installed that draws the charts."""
    if find_spec("pygal"):
        return []
    return [
        checks.Error(
            "readtrack.dashboard is installed, but not the package pygal, which draws its charts.",
            hint="Install it: pip install 'readtrack[dashboard]'",
            id="readtrack.E092",
        )
    ]
