"""Starting as read: putting out the dots of all users on a site that moves in, or those of one new account."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model
from django.db import router
from django.db.models import Max, Model, QuerySet

from readtrack import buckets
from readtrack.hits import readers
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor
from readtrack.store import keys, read_state, scripts
from readtrack.store.connection import server_time
from readtrack.store.recording import record
from readtrack.subjects import read_state_models, subject_of_row

AT_ONCE = 10_000_000  # bytes that one script writes; the server does so in some milliseconds


def start_as_read(model: type[Model], *, progress: Callable[[int], object] = int) -> int:
    """Marks each row read for all users, unless published to meanwhile. Returns how many. May be started again."""
    as_of = server_time(patient=True)
    read_state.begin(as_of)
    highest = number_readers() if readers.has_ordinals() else dict.fromkeys(keys.tags(), highest_position())
    count, size = 0, max(1, min(scripts.SLICE, AT_ONCE // size_of(max(highest.values()))))
    for subjects in subjects_of_rows(model, size):
        for some in scripts.parted(subjects):
            fill = read_state.fill(some, highest=highest[keys.tag(some[0])], as_of=as_of)
            count += scripts.run(fill, patient=True)
        progress(len(subjects))
    return count


def highest_position() -> int:
    """Returns the highest position of a user's read state; at least 0."""
    users = _rows(get_user_model())
    highest = users.count() - 1 if readers.has_ordinals() else users.aggregate(highest=Max("pk"))["highest"] or 0
    return max(0, min(highest, readers.highest()))


def number_readers() -> dict[str, int]:
    """Gives an ordinal to each user who has none yet. Returns the highest one of each partition, at least 0, by tag."""
    names = map(readers.reader_by_id, _rows(get_user_model()).values_list("pk", flat=True).iterator())
    highest = dict.fromkeys(keys.tags(), 0)
    while some := list(islice(names, scripts.SLICE)):
        highest = dict(zip(keys.tags(), scripts.run_all(*read_state.number(some), patient=True), strict=True))
    return highest


def size_of(highest: int) -> int:
    """Returns the memory of a category's read state up to that position (bytes)."""
    return (highest + 1) * readers.bits() // 8 + 1


def start_reader(pk: Any) -> None:
    """Marks every category read for a new account. Raises redis.RedisError."""
    reader = readers.or_none(pk)
    for model in read_state_models() if reader is not None else []:
        for subjects in subjects_of_rows(model, scripts.SLICE):
            record(Hit(Visitor(""), buckets.now(), reads=tuple(subjects), reader=reader))


def subjects_of_rows(model: type[Model], size: int) -> Iterator[list[str]]:
    """Yields the subjects of all rows of the model, `size` at once. No cursor stays open in between."""
    rows = _rows(model).order_by("pk").values_list("pk", flat=True)
    page = list(rows[:size])
    while page:
        yield [subject_of_row(model, pk) for pk in page]
        page = list(rows.filter(pk__gt=page[-1])[:size])


def _rows(model: type[Model]) -> "QuerySet[Any]":
    return model._base_manager.using(router.db_for_write(model))
