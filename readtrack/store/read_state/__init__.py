"""Read state: what each reader has seen of each category.

`forms` has the forms that a category's read state may have, and `ordinals` the numbers of readers.
The functions here take categories of any form and any partition.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.store import clock, keys, scripts
from readtrack.store.read_state import ordinals
from readtrack.store.read_state.forms import (
    PUBLISHED_FOR,
    ROWS,
    STRATEGIES,
    PageTime,
    Publication,
    Strategy,
    strategy_of,
)
from readtrack.store.read_state.ordinals import field
from readtrack.store.scripts import Call

__all__ = ["PUBLISHED_FOR", "ROWS", "STRATEGIES", "Publication", "Strategy"]
__all__ += ["begin", "count_readers", "field", "fill", "marks", "number", "publish", "remove"]
__all__ += ["strategy_of", "unpublish", "unread"]


def unread(reader: Reader, subjects: Sequence[str]) -> list[Call[dict[str, int]]]:
    """Returns calls that read how much is new to the reader in each category, by subject."""
    return [
        strategy.unread(reader, portion)
        for strategy, group in _by_strategy(subjects).items()
        for portion in scripts.parted(group)
    ]


def marks(
    reader: Reader,
    subjects: Sequence[str],
    *,
    began: float | None = None,
    as_of: int | None = None,
    absent: Any = ...,
) -> list[Call[tuple[str, ...]]]:
    """Returns calls that mark the categories read. Each answers with the subjects that are now read.

    What is published after `began` (by `perf_counter`), or after `as_of` (µs by Redis's clock),
    stays unread. Without both it is the time when the call runs.
    """
    page = _page_time(began=began, as_of=as_of)
    return [
        strategy.mark(reader, portion, page=page, absent=absent)
        for strategy, group in _by_strategy(subjects).items()
        for portion in scripts.parted(group)
    ]


def _page_time(*, began: float | None, as_of: int | None) -> PageTime:
    """Returns when the page began, earlier by STALE_FOR if it was measured here."""
    if began is None:
        return PageTime(began="" if as_of is None else as_of)
    stale = conf.STALE_FOR * 1_000_000
    age = int((perf_counter() - began) * 1_000_000)
    return PageTime(age=age + stale, began=clock.at(began) - stale)


def publish(publications: Sequence[Publication]) -> list[Call[int]]:
    """Returns calls that make the categories unread. Each answers with their number."""
    by_strategy: dict[Strategy, list[Publication]] = {}
    for publication in publications:
        by_strategy.setdefault(strategy_of(publication.subject), []).append(publication)
    return [
        strategy.publish(portion)
        for strategy, group in by_strategy.items()
        for portion in scripts.parted(group, tag_of=_tag_of)
    ]


def unpublish(subjects: Sequence[str], *, token_start: str) -> list[Call[int]]:
    """Returns calls that take back the publications in these categories whose tokens begin so.

    A form without numbers cannot take anything back, and gives no calls.
    """
    calls: list[Call[int]] = []
    for strategy, group in _by_strategy(subjects).items():
        for portion in scripts.parted(group):
            calls += strategy.unpublish(portion, token_start=token_start)
    return calls


def fill(subjects: Sequence[str], *, highest: int, as_of: int) -> Call[int]:
    """Marks the categories of one model and one partition read for all up to that position.

    Categories that were published to since `as_of` (µs) stay as they are.
    """
    return strategy_of(subjects[0]).fill(subjects, highest=highest, as_of=as_of)


def number(names: Sequence[Reader]) -> list[Call[int]]:
    """Returns calls that number the readers in their order, one for each partition.

    Each answers with the highest number so far.
    """
    arguments = (readers.highest(), *map(ordinals.field, names))
    return [
        Call("number", [keys.readers_next(tag), *ordinals.all_hashes(tag)], arguments, int)
        for tag in keys.tags()
    ]


def count_readers(subjects: Sequence[str], *, patient: bool = False) -> dict[str, int]:
    """Returns how many have read each category since its last publication. Raises redis.RedisError."""
    counts: dict[str, int] = {}
    for strategy, group in _by_strategy(subjects).items():
        counts.update(strategy.count_readers(group, patient=patient))
    return counts


def begin(at: int) -> None:
    """Writes into an empty Redis since when it knows publications (µs).

    Pages that begin later mark categories read.
    """
    calls = [Call("SET", [keys.reads_began(tag)], (at, "NX"), bool) for tag in keys.tags()]
    scripts.run_all(*calls, patient=True)


def remove(subject: str) -> None:
    """Removes all read state of the category, in every form."""
    states = [row(subject) for row in ROWS]
    scripts.run(Call("UNLINK", [*states, keys.published(subject), keys.sent(subject)], (), int))


def _by_strategy(subjects: Sequence[str]) -> dict[Strategy, list[str]]:
    """Returns the categories of each form, in their order."""
    groups: dict[Strategy, list[str]] = {}
    for subject in subjects:
        groups.setdefault(strategy_of(subject), []).append(subject)
    return groups


def _tag_of(publication: Publication) -> str:
    return keys.tag(publication.subject)
