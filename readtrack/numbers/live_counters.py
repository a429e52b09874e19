"""The counters of numbers in Redis: hashes of counts, such as those by device, and hours of
subjects.
"""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from readtrack import buckets
from readtrack.store import keys, scripts
from readtrack.store.counters import VALUES, Name, is_number, with_marks
from readtrack.store.scripts import Call

# Hours of a subject that Redis keeps until flushes have stored them, the running one among them.
HOURS_KEPT: int = keys.hours.ttl // keys.HOUR + 1
DAY_OF_HOURS = 25  # hours: a whole day beside the hour that a flush has last stored


class Hash(NamedTuple):
    """Counts in Redis, by field. Unsettled counts lack what SQL had before Redis lost the key."""

    counts: Mapping[str, int]
    is_settled: bool = True

    @property
    def floor(self) -> int:
        """The most that a value can have had when record.lua replaced it; 0 if it replaced none.

        By this the flush tells replaced values from lost ones. A full hash of a dimension replaces
        its lightest value, so no replaced value was heavier than the present lightest one.
        """
        if len(self.counts) < VALUES:
            return 0
        values = [count for value, count in self.counts.items() if value != "other"]
        return min(values) if len(values) >= VALUES else 0


class TotalAndHours(NamedTuple):
    """The views of a subject: all of them, and those of some hours (since 1970), by hour."""

    total: int
    views_by_hour: Mapping[int, int]


class LiveHashes(NamedTuple):
    """Hashes in Redis, without those that are missing."""

    settled: dict[Name, Mapping[str, int]]  # counts by field
    unsettled: set[Name]  # missing ones, too: SQL's counts are added to these


def live_hashes(subjects: Sequence[str], kinds: Sequence[str]) -> dict[Name, Hash]:
    """Returns the hashes of these kinds that exist, by kind and subject, in one round trip.

    Raises redis.RedisError.
    """
    by_name = ChainMap(*scripts.run_all(*hashes(subjects, kinds)))
    return {name: counts for name, counts in by_name.items() if counts.counts}


def hashes(subjects: Sequence[str], kinds: Sequence[str]) -> list[Call[dict[Name, Hash]]]:
    """Returns calls that read the hashes of these kinds by kind and subject.

    A missing hash has no counts. The subjects may be of several partitions.
    """
    calls = []
    for portion in scripts.parted(subjects, scripts.SLICE // len(kinds)):
        by_member = {
            keys.member(kind, subject): (kind, subject) for subject in portion for kind in kinds
        }
        calls.append(_hashes_by_member(keys.tag(portion[0]), by_member))
    return calls


def existing_hashes(subjects: Sequence[str], kinds: Sequence[str]) -> list[Call[LiveHashes]]:
    """Returns calls that read those hashes of these kinds that exist.

    A flush asks for thousands, of which most are missing. The subjects may be of several
    partitions.
    """
    calls = []
    for portion in scripts.parted(subjects):
        tag = keys.tag(portion[0])
        # One call for each kind, because of many kinds no subject has any.
        for kind in kinds:
            start = keys.member_start(kind, tag)
            members = [start + subject for subject in portion]
            names = [(kind, subject) for subject in portion]
            calls.append(_existing_by_member(tag, names, members))
    return calls


def _existing_by_member(
    tag: str, names: Sequence[Name], members: Sequence[str]
) -> Call[LiveHashes]:
    """Reads those of the hashes that exist. `members` are those of `views:unsettled`."""

    def decode(answer: Sequence[Sequence[Any]]) -> LiveHashes:
        found = LiveHashes({}, set())
        for name, counts, mark in zip(names, *with_marks(answer, len(names)), strict=True):
            if mark is not None:
                found.unsettled.add(name)
            elif counts:
                found.settled[name] = dict(scripts.pairs(counts))
        return found

    prefix = keys.prefix()
    hash_keys = [prefix + member for member in members]
    return Call("hashes", [keys.unsettled(tag), *hash_keys], members, decode)


def _hashes_by_member(tag: str, by_member: Mapping[str, Name]) -> Call[dict[Name, Hash]]:
    """Reads the hashes. `by_member` has their names by their members in `views:unsettled`."""

    def decode(answer: Sequence[Sequence[Any]]) -> dict[Name, Hash]:
        fields, marks = with_marks(answer, len(by_member))
        rows = zip(by_member.values(), fields, marks, strict=True)
        return {
            name: Hash(dict(scripts.pairs(counts)) if counts else {}, is_settled=mark is None)
            for name, counts, mark in rows
        }

    prefix = keys.prefix()
    hash_keys = [prefix + member for member in by_member]
    return Call("hashes", [keys.unsettled(tag), *hash_keys], [*by_member], decode, absent={})


def have_hashes(subjects: Sequence[str]) -> bool:
    """Returns True if any of the subjects has a funnel or a breakdown. Raises redis.RedisError."""
    # Asked portion by portion, because where there are hashes the first one has some.
    for portion in scripts.sliced(subjects):
        calls: list[Call[bool]] = []
        for read in hashes(portion, keys.hash_kinds()):
            _, *hash_keys = read.keys  # behind the list of unsettled counters
            calls.append(Call("EXISTS", hash_keys, (), bool))
        if any(scripts.run_all(*calls, patient=True)):
            return True
    return False


def totals_and_hours(
    subjects: Sequence[str], hours: Sequence[int]
) -> list[Call[dict[str, TotalAndHours]]]:
    """Returns calls that read the totals of the subjects and their views in each of these hours
    (since 1970), by subject.

    What is missing or no number is 0. The subjects may be of several partitions.
    """
    names = names_of(hours)
    calls = []
    for portion in scripts.parted(subjects, max(1, scripts.SLICE // (len(hours) + 1))):
        key_names: list[str] = []
        for subject in portion:
            key_names += (keys.total(subject), keys.hours(subject))
        decode = partial(_totals_and_hours, portion, hours)
        calls.append(Call("readtrack.numbers/totals_and_hours", key_names, names, decode))
    return calls


def _totals_and_hours(
    subjects: Sequence[str], hours: Sequence[int], answer: Sequence[Sequence[bytes | None]]
) -> dict[str, TotalAndHours]:
    """Returns the total and the hours of each subject."""
    found = {}
    for subject, row in zip(subjects, answer, strict=True):
        total, *views = [int(number or 0) if is_number(number or b"") else 0 for number in row]
        found[subject] = TotalAndHours(total, dict(zip(hours, views, strict=True)))
    return found


def subject_hours(hours: Sequence[int], *, subject: str) -> list[int]:
    """Returns the views of one subject in each of these hours (since 1970), in their order.

    Raises redis.RedisError.
    """
    if not hours:
        return []
    [call] = totals_and_hours([subject], hours)
    return [*scripts.run(call)[subject].views_by_hour.values()]


def names_of(hours: Iterable[int]) -> list[str]:
    """Returns the fields of these hours (since 1970) in the hash of a subject's hours."""
    return [buckets.bucket_of_hour(hour) for hour in hours]


def shorten_hours(subjects: Iterable[str], *, present: int) -> None:
    """Lets the hours of the subjects that are over go in a day, because SQL has their views.

    `present` is the hour in which the flush began (since 1970). Raises redis.RedisError.
    """
    arguments: list[str | int] = [*names_of([present - DAY_OF_HOURS, present]), keys.DAY]
    for portion in scripts.parted([*subjects]):
        start = keys.hours.start(keys.tag(portion[0]))
        hash_keys = [start + subject for subject in portion]
        scripts.run(
            Call("readtrack.numbers/shorten_hours", hash_keys, arguments, int), patient=True
        )
