"""The check of the setting BUFFER. The core checks the types of its keys."""

from django.core import checks

from readtrack.buffer.options import BufferOptions, buffer_options
from readtrack.checks.setting_values import seconds_warning

MOST_SECONDS = 300


def check_seconds() -> list[checks.CheckMessage]:
    """Checks that views do not wait for so long that milliseconds were meant."""
    seconds = buffer_options().seconds
    if seconds <= MOST_SECONDS:
        return []
    return [seconds_warning("BUFFER.seconds", seconds, default=BufferOptions().seconds)]
