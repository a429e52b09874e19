"""Times, sizes and numbers in English words, for the commands and the doctor."""

from datetime import timedelta

UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))  # seconds and name, largest first


def duration(time: timedelta) -> str:
    """Returns a duration such as `75 s` or `3 h`.

    It is in the largest unit of which there are two or more, rounded down.
    """
    seconds = max(0, round(time.total_seconds()))
    for seconds_of_unit, unit in UNITS:
        if seconds >= 2 * seconds_of_unit:
            return f"{seconds // seconds_of_unit} {unit}"
    return f"{seconds} s"


def size(count: float) -> str:
    """Returns a number of bytes such as `89 B`, `12.0 KB` or `2.1 GB`."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KB", "MB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:,.1f} GB"


def counted(count: int, noun: str) -> str:
    """Returns a number and the noun in its singular or plural, such as `1 key` or `2,000 keys`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}s"
