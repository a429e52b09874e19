"""Live counts and read state, in one round trip each or for a whole page."""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import Model
from django.http import HttpResponse

from readtrack import buckets
from readtrack.hits import readers, visitors
from readtrack.hits.hit import Hit, present, refusal
from readtrack.hits.readers import Reader
from readtrack.models import Tracked
from readtrack.store import clock, counters, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.store.counters import Total
from readtrack.store.recording import will_count
from readtrack.subjects import can_be_unread, subjects_of

AnyModel = TypeVar("AnyModel", bound=Model)
AnyTracked = TypeVar("AnyTracked", bound=Tracked)


class PageState(NamedTuple):
    """Totals, and numbers of new items for one reader, by subject; without those that Redis does not have."""

    totals: dict[str, Total]
    unread: dict[str, int]


def views(objs: Iterable[AnyTracked]) -> dict[AnyTracked, int]:
    """Returns the views of each object (live, one round trip, no query); SQL's counts while Redis is down.

    A view that `request.readtrack.view` has announced in the present request is in it, if it is going to count; that
    takes another round trip.
    """
    subjects = subjects_of(objs)
    totals = page_state(counts=list(subjects.values())).totals
    own = _announced(subjects.values())
    return {
        obj: shown_views(totals.get(subject), stored=obj.view_count) + (subject in own)
        for obj, subject in subjects.items()
    }


def _announced(subjects: Iterable[str]) -> list[str]:
    """Returns those of the subjects whose view by the present request will count, although it is not recorded yet."""
    request: Any = present.get()
    announced = tuple(subject for subject in subjects if request and subject in request.readtrack.views)
    if not announced:
        return []
    user = visitors.signed_in(request)
    if refusal(request, HttpResponse(), is_anonymous=user is None):
        return []
    return fail_open(will_count, [], Hit(visitors.visitor(request, user), buckets.now(), views=announced))


def unread(user: Any, objs: Iterable[AnyModel]) -> set[AnyModel]:
    """Returns the unread ones of the objects, in one round trip; none for anonymous users and ids out of bounds.

    Raises TypeError for an object that is no user of this site.
    """
    return {obj for obj, items in unread_counts(user, objs).items() if items}


def unread_counts(user: Any, objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of new items in each object, in one round trip; 0 for anonymous users and ids out of bounds.

    With READ_STATE "bitmap" it is 0 or 1. It is 0 for an object without read state, or whose `has_news` is false.
    Raises TypeError for an object that is no user of this site.
    """
    subjects, pk = subjects_of(objs), readers.id_of(user)
    reader = None if pk is None else readers.or_none(pk)
    dots = [subject for obj, subject in subjects.items() if can_be_unread(obj)] if reader is not None else []
    found = page_state(dots=dots, reader=reader).unread
    return {obj: found.get(subject, 0) for obj, subject in subjects.items()}


def reader_counts(objs: Iterable[AnyModel]) -> dict[AnyModel, int]:
    """Returns the number of readers of each object since its last publication. Raises redis.RedisError."""
    subjects = subjects_of(objs)
    found = read_state.count_readers(list(subjects.values()))
    return {obj: found[subject] for obj, subject in subjects.items()}


def as_of() -> int:
    """Returns Redis's time (µs) for `mark_read`: taken before a query, it leaves unread what is published afterwards.

    Raises redis.RedisError.
    """
    return clock.recent()


def page_state(*, counts: Sequence[str] = (), dots: Sequence[str] = (), reader: Reader | None = None) -> PageState:
    """Returns totals and read state, in one round trip; empty while Redis is down."""
    totals = [counters.totals(some) for some in scripts.sliced(counts)]
    read = [read_state.unread(reader, some) for some in scripts.sliced(dots)] if reader is not None else []
    answers = fail_open(scripts.run_all, [], *totals, *read)
    return PageState(dict(ChainMap(*answers[: len(totals)])), dict(ChainMap(*answers[len(totals) :])))


def shown_views(total: Total | None, *, stored: int) -> int:
    """Returns the number of views to show, by Redis's total and SQL's count: never less than either."""
    if total is None:
        return stored
    return max(total.views, stored) if total.is_settled else total.views + stored


aviews = sync_to_async(views)
aunread = sync_to_async(unread)
aunread_counts = sync_to_async(unread_counts)
areader_counts = sync_to_async(reader_counts)
