"""Stores counts of hashes, numbers of readers and, once a day, sketches; removes subjects that were
idle for long.
"""

from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain

from django.db import transaction

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.reading import READ
from readtrack.models import Archive, Breakdown, ReaderHistory
from readtrack.sql import archive, databases, history, runs
from readtrack.sql.row_counts import RowCounts
from readtrack.store import counters, keys, read_state, removal, scripts, uniques
from readtrack.store.counters import Hash, Name, Stored
from readtrack.subjects import read_state_models, subject_column
from readtrack.unread import subjects_of_rows

HOUR = 3_600_000_000  # µs
Hashes = Mapping[Name, Mapping[str, int]]  # counts by field, of each hash


def store_breakdowns(subjects: Sequence[str], epoch: runs.SqlEpoch, *, hour: int) -> Hashes:
    """Stores the counts of the subjects' hashes in SQL under that hour, and raises hashes of which
    SQL holds more.

    Returns the settled hashes, missing ones included. If Redis has to be settled first, that is
    left to the next flush.
    """
    found: dict[Name, Mapping[str, int]] = {}
    for some in scripts.sliced(subjects):
        # Before Redis is read, so that _add_gains knows whether rows changed since.
        stored = archive.breakdowns(
            [(kind, subject) for subject in some for kind in keys.hash_kinds()]
        )
        reads = counters.hashes(some, keys.hash_kinds())
        answers = scripts.run_all(*reads, *map(counters.epoch, keys.by_tag(some)), patient=True)
        live = {
            name: one.counts
            for name, one in ChainMap(*answers[: len(reads)]).items()
            if one.is_settled
        }
        found |= live
        if not epoch.advance(answers[len(reads) :]):
            continue
        if conf.HISTORY and _gains(live, stored):
            if not databases.retried(
                databases.of(Breakdown), partial(_add_gains, live, stored, hour=hour)
            ):
                found |= store_breakdowns(some, epoch, hour=hour)
                continue
        else:
            _raise(live, stored, hour=hour)
        if ahead := [name for name in live if _higher(live[name], stored[name])]:
            # Read again after Redis, so that nothing comes back that was deleted since.
            stored = archive.breakdowns(ahead)
            higher = {
                keys.member(*name): Stored(_higher(live[name], stored[name])) for name in ahead
            }
            scripts.run_all(*counters.lift(higher), patient=True)
    return found


def _higher(counts: Mapping[str, int], stored: Mapping[str, int]) -> Mapping[str, int]:
    """Returns the stored counts that are higher than a hash's own."""
    floor = Hash(
        counts
    ).floor  # a missing value that counts no more was replaced; any other one was lost
    return {field: count for field, count in stored.items() if count > counts.get(field, floor)}


def _gains(live: Hashes, stored: Hashes) -> Counter[history.Gain]:
    """Returns how much more is live than stored, by model; all gains of a hash together are exact."""
    found: Counter[history.Gain] = Counter()
    for name, counts in live.items():
        if name[0] == "reading":  # reads have a history of each object
            continue
        before = stored[name]
        rises = {
            field: count - before.get(field, 0)
            for field, count in counts.items()
            if count > before.get(field, 0)
        }
        # A new value has the count of the one that it replaced.
        rest = sum(before[field] for field in _replaced(counts, before))
        new = rises.keys() - (before.keys() - {"other"})
        for field in sorted(new, key=lambda field: (field != "other", rises[field])):
            taken = min(rest, rises[field] - (field != "other"))
            rises[field], rest = rises[field] - taken, rest - taken
        for field, rise in rises.items():
            found[name[1].partition(":")[0], name[0], field[: archive.FIELD_LENGTH]] += rise
    return +found


def _replaced(counts: Mapping[str, int], stored: Mapping[str, int]) -> list[str]:
    """Returns the stored values of a hash which others have replaced, not those that were lost."""
    floor = Hash(counts).floor
    return [field for field, count in stored.items() if field not in counts and count <= floor]


def _add_gains(live: Hashes, known: Hashes, *, hour: int) -> bool:
    """Stores the counts, and what they gained, in one transaction. Returns False if Redis has to be
    read again.
    """
    with transaction.atomic(using=databases.of(Breakdown).alias):
        runs.lock_epoch()  # one flush at a time, because each of two would add the same gain
        stored = archive.breakdowns(live)
        # Rows that changed since were stored, replaced, reset or deleted, maybe after Redis was
        # read.
        if any(stored[name] != known[name] for name in live):
            return False
        _raise(live, stored, hour=hour)
        # As the rows rose, because MySQL may take two values that differ in case for one.
        history.add_gains(_gains(archive.breakdowns(live), stored), hour=hour)
    return True


def _raise(live: Hashes, stored: Hashes, *, hour: int) -> None:
    """Stores counts that rose, and reads that rose under that hour, and deletes values that were
    replaced.
    """
    if conf.HISTORY:
        # Before the counts, because a killed flush is done again.
        reads = {
            name: counts[READ]
            for name, counts in live.items()
            if name[0] == "reading" and READ in counts
        }
        rose = {
            name[1]: count for name, count in reads.items() if count > stored[name].get(READ, 0)
        }
        history.store(
            {history.of_reads(subject): RowCounts(count, 0) for subject, count in rose.items()},
            hour=hour,
        )
    rows = [
        (subject_column(subject), kind, field[: archive.FIELD_LENGTH], count)
        for (kind, subject), counts in live.items()
        for field, count in counts.items()
        if count > stored[kind, subject].get(field, 0)
    ]
    databases.upsert(Breakdown, ("subject", "kind", "field"), ("count",), rows=rows)
    for name, counts in live.items():
        if replaced := _replaced(counts, stored[name]):
            archive.delete_fields(name, replaced, floor=Hash(counts).floor)


def archive_changed(live: Mapping[str, RowCounts], epoch: runs.SqlEpoch, *, hour: int) -> int:
    """Stores sketches and hashes of the subjects that changed, and removes idle subjects from
    Redis.

    `live` holds what their rows store; `hour` is the present one since 1970. Returns how many lost
    sketches came back.
    """
    merged = 0
    for some in scripts.sliced(list(live)):
        known = archive.archived(some, "views", "visitors", "hour")
        changed = [
            subject
            for subject in some
            if subject not in known or known[subject].views != live[subject].views
        ]
        # A sketch that Redis alone has lost must not replace a fuller one.
        poorer = [
            one for one in changed if one in known and known[one].visitors > live[one].visitors
        ]
        fuller = {
            one: Stored({}, sketch) for one, sketch in archive.sketches(poorer).items() if sketch
        }
        scripts.run_all(*counters.lift(fuller), patient=True)
        merged += len(fuller)
        store_breakdowns(changed, epoch, hour=hour)
        sketches = ChainMap(
            *scripts.run_all(*map(counters.sketches, scripts.parted(changed)), patient=True)
        )
        rows = ((subject_column(one), *live[one], sketches[one] or b"", hour) for one in changed)
        databases.upsert(Archive, ("subject",), ("views", "visitors", "sketch", "hour"), rows=rows)
        if conf.IDLE_DAYS:
            until = hour - conf.IDLE_DAYS * 24
            idle = [one for one in set(some) - set(changed) if known[one].hour <= until]
            idle = [one for one in idle if not uniques.strategy_of(one).is_exact]
            # A funnel may gain steps without a view.
            hashes = store_breakdowns(idle, epoch, hour=hour)
            parts = ({one: live[one].views for one in part} for part in scripts.parted(idle))
            scripts.run_all(*(removal.remove_idle(part, hashes) for part in parts), patient=True)
    return merged


def store_readers(*, at: datetime) -> int:
    """Stores the numbers of readers that changed, for the hour of `at`. Returns how many. Raises
    redis.RedisError.
    """
    hour, number, table = buckets.hour_index(at), 0, databases.rows(ReaderHistory)
    has_target = databases.of(ReaderHistory).features.supports_update_conflicts_with_target
    unique = ["subject", "hour"] if has_target else None
    # By the site's own rows, because SCAN would miss categories whose key a publication removed.
    for subjects in chain.from_iterable(
        subjects_of_rows(model, scripts.SLICE) for model in read_state_models()
    ):
        counts = read_state.count_readers(subjects, patient=True)
        found = {subject_column(subject): count for subject, count in counts.items()}
        stored = history.newest_readers(list(found))
        changed = {column: count for column, count in found.items() if count != stored[column]}
        rows = [
            ReaderHistory(subject=column, hour=hour, readers=count)
            for column, count in changed.items()
        ]
        # Not databases.upsert, because the number may fall.
        table.bulk_create(
            rows, update_conflicts=True, update_fields=["readers"], unique_fields=unique
        )
        number += len(rows)
    return number
