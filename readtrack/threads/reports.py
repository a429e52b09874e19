"""What is new to a reader in a thread. Nothing here writes.

`unread` and `unread_counts` of `readtrack.reports` are for threads and boards, too.
"""

from datetime import datetime, timedelta, timezone
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db.models import Model, Q
from django.utils.timezone import make_naive

from readtrack.hits import readers
from readtrack.store import scripts
from readtrack.store.circuit import fail_open
from readtrack.subjects import (
    label_in,
    label_of,
    line_of_settings,
    model_with_label,
    parse_subject,
    subject_of,
)
from readtrack.threads.forms import positions_of
from readtrack.threads.positions import NewsOfReader

__all__ = ["afirst_unread", "aread_until", "first_unread", "read_until"]

LATE = timedelta(hours=1)  # by which a row may be written before it is published, at most


def read_until(user: Any, obj: Model) -> datetime | None:
    """Returns the time (aware UTC) up to which the user has read the object.

    That is the time, by Redis's clock, when the last page of it with something new began, or of a
    later marking of everything. Returns None for a user who has read nothing, and while Redis is
    down. Raises TypeError for an object of a model without "read_state": "positions".
    """
    news = _news_of(user, obj)
    if news is None or not news.position:
        return None
    return _time(news.position)


def first_unread(
    user: Any, rows: Any, *, of: Model | None = None, written: str = ""
) -> Model | None:
    """Returns the first of the rows that is new to the user, in one trip and one query.

    `rows` is a queryset of posts in their order, or the manager of a thread's posts. The thread is
    `of`, by default the one whose manager it is. Returns None if nothing is new.

    A row is new if it was published since the user was there, whenever it was written. After more
    than 99 publications, and after one that names no row (`mark_unread`), `written` is needed, the
    name of the field with the time of a row: the first row is then up to an hour too early. Without
    that name it is the first row of all. Raises TypeError without a thread, or for one without
    positions.
    """
    queryset = rows.all()
    thread = of or getattr(rows, "instance", None) or queryset._hints.get("instance")
    if thread is None:
        raise TypeError("Name the thread: first_unread(user, rows, of=thread).")
    news = _news_of(user, thread)
    if news is None or not news.posts:
        return None
    is_new = _condition(news, queryset.model, written=written)
    first: Model | None = queryset.filter(is_new).first()
    return first


def _condition(news: NewsOfReader, model: type[Model], *, written: str) -> Q:
    """Returns the condition of rows of the model that are new, or may be."""
    label = label_of(model)
    new_rows = [parse_subject(post) for post in news.posts if label_in(post) == label]
    is_known = Q(pk__in=[row[1] for row in new_rows if row])
    # A model that is renamed has posts by its old name.
    is_renamed = any(model_with_label(label_in(post)) is None for post in news.posts)
    if not news.has_unknown and not is_renamed:
        return is_known
    if not written:
        return Q()
    earliest = _time(news.position) - LATE
    if not settings.USE_TZ:
        earliest = make_naive(earliest)
    return is_known | Q(**{f"{written}__gte": earliest})


def _news_of(user: Any, obj: Model) -> NewsOfReader | None:
    """Returns what is new to the user in a thread; None for an anonymous user and without Redis.

    Raises TypeError for an object of another form.
    """
    subject = subject_of(obj)
    positions = positions_of(subject)
    if positions is None:
        line = line_of_settings(obj._meta.label, "read_state", value="positions")
        raise TypeError(
            f"{type(obj).__name__} has no positions of readers; write into the settings {line}."
        )
    pk = readers.id_of(user)
    reader = None if pk is None else readers.reader_or_none(pk)
    if reader is None:
        return None
    return fail_open(scripts.run, None, positions.news_of(reader, subject))


def _time(microseconds: int) -> datetime:
    """Returns a time of Redis's clock as an aware datetime."""
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(microseconds=microseconds)


afirst_unread = sync_to_async(first_unread)
aread_until = sync_to_async(read_until)
