"""Times, sizes and numbers in English words, for the commands and the doctor."""

from datetime import timedelta

UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))  # of durations, with their seconds


def duration(time: timedelta) -> str:
    """Returns `75 s`, `3 h`: rounded down, in the largest unit of which there are two or more."""
    seconds = max(0, round(time.total_seconds()))
    for length, unit in UNITS:
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def size(count: float) -> str:
    """Returns a number of bytes as `89 B`, `12.0 KB`, `2.1 GB`."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KB", "MB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:,.1f} GB"


def counted(count: int, noun: str) -> str:
    """Returns `1 key`, `2,000 keys`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}s"
