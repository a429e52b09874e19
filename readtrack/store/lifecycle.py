"""The life of a subject's keys: orphans, removal, resets, and what its hashes and sketch hold."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from readtrack.store import keys, scripts
from readtrack.store.connection import connect
from readtrack.store.counters import SCAN_COUNT, Epoch
from readtrack.store.scripts import Call

ORPHAN_NOTE = 30 * 86_400_000_000  # microseconds after which a note about a missing row is forgotten


class LiveCounts(NamedTuple):
    """What Redis holds of one subject beside its total."""

    sketch: bytes
    hashes: dict[str, dict[str, int]]  # counts by family and field; a hash that waits for its base is left out


def live_counts(subjects: Sequence[str], *, with_sketches: bool) -> tuple[dict[str, LiveCounts], Epoch]:
    """Hashes and, where wanted, sketches of the subjects, and where Redis stands, in one round trip."""
    if not subjects:
        return {}, Epoch(0, 0)
    pipeline: Any = connect(patient=True).pipeline(transaction=False)
    pairs = [(family, subject) for subject in subjects for family in keys.hash_kinds()]
    for family, subject in pairs:
        pipeline.hgetall(keys.counter(family, subject))
    # Marks after counts: a hash that began anew in between shows its mark, or has its base by then.
    pipeline.execute_command("ZMSCORE", keys.unsettled(), *(keys.member(*pair) for pair in pairs))
    for subject in subjects if with_sketches else ():
        pipeline.get(keys.hll(subject))
    pipeline.get(keys.flush_epoch())
    *found_all, epoch = pipeline.execute()
    answers = iter(found_all)
    counts = [next(answers) for _ in pairs]
    found = {subject: LiveCounts(b"", {}) for subject in subjects}
    for (family, subject), fields, mark in zip(pairs, counts, next(answers), strict=True):
        if mark is None:
            found[subject].hashes[family] = {field.decode(): int(count) for field, count in fields.items()}
    if with_sketches:
        found = {subject: one._replace(sketch=next(answers) or b"") for subject, one in found.items()}
    return found, Epoch(*map(int, (epoch or b"0 0").split()))


def remove(subjects: Sequence[str]) -> Call[int]:
    """Removes everything that the subjects have."""
    return _remove("any", {subject: (0, {}) for subject in subjects}, others=keys.others)


def remove_idle(stored: Mapping[str, tuple[int, Mapping[str, int]]]) -> Call[int]:
    """Removes the subjects whose total, and the sums of whose hashes by family, are just as SQL stores them."""
    return _remove("idle", stored, others=lambda subject: ())


def _remove(
    mode: str, subjects: Mapping[str, tuple[int, Mapping[str, int]]], *, others: Callable[[str], tuple[str, ...]]
) -> Call[int]:
    names = [keys.unsettled(), keys.flush_orphans()]
    args: list[str | int | bytes] = [len(keys.owned("")) + len(others("")), len(keys.hash_kinds()), mode]
    for subject, (views, sums) in subjects.items():
        names += (*keys.owned(subject), *others(subject))
        args += (subject, *_hash_names(subject), views, *(sums.get(family, 0) for family in keys.hash_kinds()))
    return Call("remove", names, args, int)


def _hash_names(subject: str) -> list[str]:
    return [keys.member(family, subject) for family in keys.hash_kinds()]


def ripe_orphans(subjects: Sequence[str], *, age: int) -> Call[list[str]]:
    """Notes that these have no row; gives those that were noted at least `age` seconds ago."""

    def decode(answer: list[bytes]) -> list[str]:
        return [subject.decode() for subject in answer]

    return Call("orphan", [keys.flush_orphans()], (age * 1_000_000, *subjects), decode)


def delete_old_orphans(*, now: int) -> None:
    """Drops notes so old that nobody came to confirm them; `now` is Redis's, in microseconds."""
    connect(patient=True).zremrangebyscore(keys.flush_orphans(), "-inf", now - ORPHAN_NOTE)


def reset(subjects: Sequence[str]) -> Call[int]:
    """Sets the subjects to zero; gives Redis's time of it in microseconds."""
    names = [keys.unsettled(), keys.reset()]
    args: list[str | int] = [len(keys.owned("")) + len(keys.others("")), len(keys.hash_kinds())]
    for subject in subjects:
        names += (*keys.owned(subject), *keys.others(subject))
        args += (subject, *_hash_names(subject))
    return Call("reset", names, args, int)


def purge(times: Mapping[str, int]) -> Call[int]:
    """Removes what the subjects hold from before they were reset, then (µs); gives how many resets were forgotten."""
    names = [keys.unsettled(), keys.reset(), keys.flush_last()]
    args: list[str | int] = [len(keys.owned("")) + len(keys.others("")), len(keys.hash_kinds())]
    for subject, time in times.items():
        names += (*keys.owned(subject), *keys.others(subject))
        args += (time, subject, *_hash_names(subject))
    return Call("purge", names, args, int)


def resets() -> dict[str, int]:
    """The subjects that were reset lately, and when (µs)."""
    client: Any = connect(patient=True)
    found = client.zrange(keys.reset(), 0, -1, withscores=True)
    return {subject.decode(): int(time) for subject, time in found}


def delete_resets(*, until: int) -> None:
    """Drops the marks of all resets before then (µs)."""
    connect(patient=True).zremrangebyscore(keys.reset(), "-inf", f"({until}")


def delete_reset(subject: str, *, at: int) -> None:
    """Drops the mark of that reset; one that came since stays."""
    client: Any = connect(patient=True)
    if client.zscore(keys.reset(), subject) == at:
        client.zrem(keys.reset(), subject)


def clear() -> None:
    """Removes every key with our prefix."""
    client: Any = connect(patient=True)
    for some in scripts.sliced(list(client.scan_iter(match=keys.matching_everything(), count=SCAN_COUNT))):
        client.unlink(*some)
