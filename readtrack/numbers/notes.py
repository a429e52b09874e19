"""Notes on the charts."""

from datetime import date, datetime

from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.lines import plain
from readtrack.numbers import local_time
from readtrack.numbers.models import Note
from readtrack.sql import databases


def note(text: str, *, at: date | None = None) -> bool:
    """Adds a note to the charts, such as "newsletter sent".

    `at` is a day, or a time, whose day in TIME_ZONE it is; today by default. The same note twice on
    a day is one note. Longer texts are cut to 200 characters. Returns True if the note is new.
    Raises ValueError for an empty text.
    """
    longest = Note._meta.get_field("text").max_length
    short_text = plain(text).strip()[:longest]
    if not short_text:
        raise ValueError("A note needs a text.")
    if at is None or isinstance(at, datetime):
        at = local_time.day_of(buckets.now(at), zone=get_default_timezone())
    _, is_new = databases.rows(Note).get_or_create(day=at, text=short_text)
    return is_new
