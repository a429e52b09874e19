"""Stores counts of hashes, numbers of readers and, once a day, sketches; removes subjects that were idle for long."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.reading import READ
from readtrack.models import Archive, Breakdown
from readtrack.sql import archive, databases, history
from readtrack.sql.row_counts import RowCounts
from readtrack.sql.runs import SqlEpoch
from readtrack.store import breakdowns, counters, keys, lifecycle, read_state, scripts, uniques
from readtrack.store.breakdowns import Hash, Name
from readtrack.store.counters import Epoch, Stored
from readtrack.subjects import read_state_models, subject_column
from readtrack.unread import subjects_of_rows

HOUR = 3_600_000_000  # µs
HOURS = 24
Hashes = Mapping[Name, Mapping[str, int]]  # counts by field, of each hash


def store_breakdowns(subjects: Sequence[str], epoch: SqlEpoch, *, at: int) -> None:
    """Stores the counts of the subjects' hashes in SQL at that time (µs), and raises hashes of which SQL holds more."""
    for some in scripts.sliced(subjects):
        _store(*_live_hashes(some), epoch, hour=at // HOUR)


def _live_hashes(subjects: Sequence[str]) -> tuple[Hashes, list[Epoch]]:
    """Returns the settled hashes, missing ones included, and the epochs of their partitions afterwards."""
    reads = breakdowns.read(subjects, keys.hash_kinds())
    answers = scripts.run_all(*reads, *map(counters.epoch, keys.by_tag(subjects)), patient=True)
    found = {name: one.counts for answer in answers[: len(reads)] for name, one in answer.items() if one.is_settled}
    return found, answers[len(reads) :]


def _store(live: Hashes, current: Sequence[Epoch], epoch: SqlEpoch, *, hour: int) -> None:
    """Stores nothing if Redis has to be settled first; the next flush does that."""
    if not epoch.advance(current):
        return
    if conf.HISTORY:
        _store_reads(live, hour)
    rows = []
    for (kind, subject), counts in live.items():
        column = subject_column(subject)
        rows += [(column, kind, field[: archive.FIELD_LENGTH], count) for field, count in counts.items()]
    databases.upsert(Breakdown, ("subject", "kind", "field"), ("count",), rows=rows)
    ahead = {}
    for name, stored in archive.breakdowns(live).items():
        floor = Hash(live[name]).floor  # a missing value that counts no more was replaced; any other one was lost
        replaced = [field for field, count in stored.items() if field not in live[name] and count <= floor]
        if replaced:
            archive.delete_fields(name, replaced, floor=floor)
        higher = {field: count for field, count in stored.items() if count > live[name].get(field, floor)}
        if higher:
            ahead[keys.member(*name)] = Stored(higher)
    if ahead:
        scripts.run_all(*counters.lift(ahead), patient=True)


def _store_reads(live: Hashes, hour: int) -> None:
    """Stores the reads that rose under that hour. Before the counts, because a killed flush is done again."""
    reads = {name: counts[READ] for name, counts in live.items() if name[0] == "reading" and READ in counts}
    stored = archive.breakdowns(reads) if reads else {}
    rose = {name[1]: count for name, count in reads.items() if count > stored[name].get(READ, 0)}
    history.store({history.of_reads(subject): RowCounts(count, 0) for subject, count in rose.items()}, hour=hour)


def archive_changed(live: Mapping[str, RowCounts], epoch: SqlEpoch, *, hour: int) -> int:
    """Stores sketches and hashes of the subjects that changed, and removes idle subjects from Redis.

    `live` holds what their rows store by now; `hour` is the present hour since 1970. Returns the number of sketches
    that Redis had lost and has again.
    """
    merged = 0
    for some in scripts.sliced(list(live)):
        known = archive.archived(some)
        changed = [subject for subject in some if subject not in known or known[subject].views != live[subject].views]
        # A sketch that Redis alone has lost must not replace a fuller one.
        poorer = [one for one in changed if one in known and known[one].visitors > live[one].visitors]
        fuller = (
            {one: Stored({}, sketch) for one, sketch in archive.sketches(poorer).items() if sketch} if poorer else {}
        )
        scripts.run_all(*counters.lift(fuller), patient=True)
        merged += len(fuller)
        if changed:
            _store(*_live_hashes(changed), epoch, hour=hour)
            reads = map(counters.sketches, scripts.parted(changed))
            sketches = ChainMap(*scripts.run_all(*reads, patient=True))
            rows = ((subject_column(one), *live[one], sketches[one], hour) for one in changed)
            databases.upsert(Archive, ("subject",), ("views", "visitors", "sketch", "hour"), rows=rows)
        if conf.IDLE_DAYS:
            until = hour - conf.IDLE_DAYS * HOURS
            idle = [one for one in set(some) - set(changed) if known[one].hour <= until]
            if idle := [one for one in idle if not uniques.strategy_of(one).keeps_members]:
                _remove_idle(idle, live, epoch, hour=hour)
    return merged


def _remove_idle(subjects: Sequence[str], live: Mapping[str, RowCounts], epoch: SqlEpoch, *, hour: int) -> None:
    hashes, current = _live_hashes(subjects)
    _store(hashes, current, epoch, hour=hour)  # a funnel may gain steps without a view
    sums: dict[str, dict[str, int]] = {subject: {} for subject in subjects}
    for (kind, subject), counts in hashes.items():
        sums[subject][kind] = sum(counts.values())
    parts = ({one: (live[one].views, sums[one]) for one in some} for some in scripts.parted(subjects))
    scripts.run_all(*map(lifecycle.remove_idle, parts), patient=True)


def store_readers(*, at: datetime) -> int:
    """Stores the numbers of readers that changed, for the hour of `at`. Returns how many. Raises redis.RedisError."""
    hour = buckets.hour_index(at)
    # By the site's own rows, because SCAN would miss categories whose key a publication removed.
    number = 0
    for subjects in chain.from_iterable(subjects_of_rows(model, scripts.SLICE) for model in read_state_models()):
        counts = read_state.count_readers(subjects, patient=True)
        found = {subject_column(subject): count for subject, count in counts.items()}
        stored = history.newest_readers(list(found))
        changed = {column: count for column, count in found.items() if count != stored.get(column, 0)}
        history.store_readers(changed, hour=hour)
        number += len(changed)
    return number
