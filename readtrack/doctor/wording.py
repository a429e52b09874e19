"""How times and commands are told."""

from datetime import timedelta

from django.utils.translation import gettext, gettext_lazy, ngettext_lazy

UNITS = (
    (86_400, ngettext_lazy("%(count)s day", "%(count)s days", "count")),
    (3600, gettext_lazy("%(count)s h")),
    (60, gettext_lazy("%(count)s min")),
    (1, gettext_lazy("%(count)s s")),
)


def span(time: timedelta) -> str:
    """`75 s`, `3 h`: as much as one has to know."""
    seconds = max(0, round(time.total_seconds()))
    size, unit = next((pair for pair in UNITS if seconds >= 2 * pair[0]), UNITS[-1])
    return str(unit % {"count": seconds // size})


def run(command: str) -> str:
    """What to type."""
    return gettext("Run: %(command)s") % {"command": command}
