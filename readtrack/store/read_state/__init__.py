"""Read state: what each reader has seen of each category.

`forms` has the forms that the read state of a category may have, beside those of parts, `by_model`
chooses among them, and `ordinals` has the numbers of readers. The functions here take categories of
any form and any partition, by their subjects.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.store import clock, keys, scripts, subject_keys
from readtrack.store.read_state import ordinals
from readtrack.store.read_state.by_model import FORMS, form_of
from readtrack.store.read_state.forms import ROWS, Form, PageTime, Publication
from readtrack.store.read_state.ordinals import field
from readtrack.store.scripts import Call

__all__ = ["FORMS", "ROWS", "Form", "PageTime", "Publication"]
__all__ += ["begin", "count_readers", "field", "forget", "have_begun"]
__all__ += ["last_published", "marks", "not_begun"]
__all__ += ["form_of", "number", "page_time", "publish", "remove", "unpublish"]
__all__ += ["unread_calls", "within"]


def unread_calls(reader: Reader, subjects: Sequence[str]) -> list[Call[dict[str, int]]]:
    """Returns calls that read how many new items the reader has, by subject.

    For a form that only knows if there are any, the number is 0 or 1. A category may have a number
    in each partition: the highest one is right. The result of a call is empty if the Redis of its
    partition has not begun (see `not_begun`).
    """
    return [
        call
        for form, group in _by_form(subjects).items()
        for call in form.unread_calls(reader, group)
    ]


def marks(
    reader: Reader,
    subjects: Sequence[str],
    *,
    began: float | None = None,
    as_of: int | None = None,
    absent: Any = ...,
) -> list[Call[tuple[str, ...]]]:
    """Returns calls that mark the categories read.

    Each answers with the subjects of the categories that are now read.

    Categories that are published to after `began` (by `perf_counter`), or after `as_of` (µs by
    Redis's clock), stay unread. Without both, it is the time when the call runs. `absent` is the
    result of a call whose server of a cluster is silent.
    """
    page = page_time(began=began, as_of=as_of)
    return [
        call
        for form, group in _by_form(subjects).items()
        for call in form.mark_calls(reader, group, page=page, absent=absent)
    ]


def page_time(*, began: float | None = None, as_of: int | None = None) -> PageTime:
    """Returns when the page began, by one of the times that `marks` takes.

    With `began`, that is earlier by `stale_for`, because the page may come from a replica or a
    cache. Redis may be asked for its time. Raises redis.RedisError.
    """
    if began is not None:
        lag = conf.DOTS.stale_for * 1_000_000  # µs
        age = int((perf_counter() - began) * 1_000_000)
        return PageTime(age=age + lag, began=clock.at(began) - lag)
    if as_of is not None:
        return PageTime(began=as_of)
    return PageTime()


def publish(publications: Sequence[Publication]) -> list[Call[int]]:
    """Returns calls that make the categories unread. Each answers with Redis's time (µs); with 0,
    and without doing anything, if the Redis of its partition has not begun.
    """
    by_form: dict[Form, list[Publication]] = {}
    for publication in publications:
        by_form.setdefault(form_of(publication.subject), []).append(publication)
    return [
        form.publish(portion)
        for form, group in by_form.items()
        for portion in scripts.parted(group, tag_of=_tag_of)
    ]


def unpublish(subjects: Sequence[str], *, post: str, token_start: str) -> list[Call[int]]:
    """Returns calls that take back the publications of the post in these categories.

    `post` is its subject, and `token_start` what the tokens of its publications begin with.

    A form without numbers cannot take anything back, and gives no calls.
    """
    calls: list[Call[int]] = []
    for form, group in _by_form(subjects).items():
        for portion in scripts.parted(group):
            calls += form.unpublish(portion, post=post, token_start=token_start)
    return calls


def last_published(subjects: Sequence[str]) -> list[Call[dict[str, int]]]:
    """Returns calls that read the times of the last publications (µs by Redis's clock), by subject.

    Leaves out the categories to which nothing was published as far as Redis knows.
    """
    return [
        form.last_published(portion)
        for form, group in _by_form(subjects).items()
        for portion in scripts.parted(group)
    ]


def number(readers_in_order: Sequence[Reader]) -> list[Call[int]]:
    """Returns calls that give ordinals to readers who have none, in this order.

    There is one call for each partition. Each answers with the highest ordinal that is given; with
    -1, and without giving any, if the Redis of its partition has not begun.
    """
    arguments = (readers.highest_possible(), *map(ordinals.field, readers_in_order))
    calls = []
    for tag in keys.tags():
        key_names = [keys.reads_began(tag), keys.readers_new(tag), keys.readers_next(tag)]
        key_names += ordinals.all_hashes(tag)
        calls.append(Call("number", key_names, arguments, int))
    return calls


def forget(anonymous: Reader) -> list[Call[int | None]]:
    """Returns calls that forget an anonymous reader, one for each partition.

    Each answers with the ordinal that the reader had; None for a reader without one.
    """
    arguments = (ordinals.field(anonymous),)
    return [
        Call("forget_reader", ordinals.hashes_of(anonymous, tag), arguments, absent=None)
        for tag in keys.tags()
    ]


def count_readers(subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
    """Returns how many readers have read each category since its last publication, by subject.

    Categories of a form that does not know its readers are left out. Raises redis.RedisError.
    """
    counts: dict[str, int] = {}
    for form, group in _by_form(subjects).items():
        if not form.knows_readers:
            continue
        counts.update(form.count_readers(group, patient=patient))
    return counts


def begin(at: int, tags: Sequence[str] | None = None) -> None:
    """Notes that Redis knows all publications since that time (µs), unless it has such a note.

    `tags` are those of the partitions, by default of all. Only pages that begin later mark
    categories read. Raises redis.RedisError.
    """
    if tags is None:
        tags = keys.tags()
    calls = [Call("SET", [keys.reads_began(tag)], (at, "NX"), bool) for tag in tags]
    scripts.run_all(*calls, patient=True)


def not_begun(tags: Sequence[str]) -> list[str]:
    """Returns the tags of those partitions whose Redis has not begun: it is new, or it has lost its
    read state and has not got it back.

    Until then there are no dots, nothing is marked read, and publications wait in the outbox.
    Raises redis.RedisError.
    """
    answers = scripts.run_all(*have_begun(tags), patient=True)
    return [tag for tag, has_begun in zip(tags, answers, strict=True) if not has_begun]


def have_begun(tags: Sequence[str]) -> list[Call[bool]]:
    """Returns calls that read whether the Redis of each partition has begun.

    The result is True if its server of a cluster is silent.
    """
    return [Call("EXISTS", [keys.reads_began(tag)], (), bool, absent=True) for tag in tags]


def remove(subject: str) -> bool:
    """Removes all read state of the category, in every form. Returns True, by which `fail_open`
    tells that it did not fail. Raises redis.RedisError.
    """
    rows = subject_keys.rows_of_read_state()
    key_names = subject_keys.names_of(rows, subject, at=buckets.now())
    scripts.run(Call("UNLINK", key_names, (), int))
    return True


def within(subjects: Sequence[str]) -> dict[str, list[str]]:
    """Returns which objects each category is within, such as the boards of a thread: their subjects
    by the subject of the category.

    Categories that are within nothing may be left out. Raises django.db.Error.
    """
    outer_subjects: dict[str, list[str]] = {}
    for form, group in _by_form(subjects).items():
        outer_subjects.update(form.within(group))
    return outer_subjects


def _by_form(subjects: Sequence[str]) -> dict[Form, list[str]]:
    """Returns the subjects of the categories by the form of their read state, in their order."""
    groups: dict[Form, list[str]] = {}
    for subject in subjects:
        groups.setdefault(form_of(subject), []).append(subject)
    return groups


def _tag_of(publication: Publication) -> str:
    """Returns the tag of the partition of the publication's category."""
    return keys.tag(publication.subject)
