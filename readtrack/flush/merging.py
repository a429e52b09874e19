"""Merges Redis and SQL by maximum: settles counters that began anew, writes settled ones, lifts
those behind.
"""

from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Model

from readtrack.conf import conf, logger
from readtrack.flush import archiving
from readtrack.models import FlushRun, History
from readtrack.sql import archive, databases, history, row_counts, runs
from readtrack.sql.row_counts import RowCounts, Written
from readtrack.store import counters, keys, removal, scripts, uniques
from readtrack.store.connection import server_time
from readtrack.store.counters import MODEL_HOURS, Epoch, Stored, Total
from readtrack.subjects import counted_models, label_of, rows_by_model

ROWS_LOCKED = (
    2_000  # at once: PostgreSQL raises so many in some 20 ms, in which their own saves wait
)

Live = Mapping[str, RowCounts]  # by subject


def settle(epoch: runs.SqlEpoch) -> int:
    """Adds SQL's count to each unsettled counter, and lets a restored Redis join SQL's epochs.
    Returns how many.
    """
    settled, until = 0, server_time(patient=True)
    while True:
        lists = counters.unsettled(until=until, tags=epoch.tags)
        names = [name for some, _ in lists for name in some]
        stored = _stored(names) if names else {}
        # SQL's epochs are read after SQL's counts, so that all of them were settled in this epoch
        # or an earlier one.
        known = epoch.known([redis for _, redis in lists])
        calls = [
            counters.settle(
                {name: stored[name] for name in some}, epoch=redis, known=known.get(redis.tag)
            )
            for some, redis in lists
        ]
        done: list[tuple[int, Epoch]] = scripts.run_all(*calls, patient=True)
        epoch.advance([present for _, present in done])
        settled += sum([count for count, _ in done])
        if not names:
            return settled


def _stored(names: Sequence[str]) -> dict[str, Stored]:
    """Returns what SQL stores of each counter: zero for a row that is gone."""
    found = dict.fromkeys(names, Stored({"": 0}))
    parts = [(name, *keys.split_member(name)) for name in names]
    if hours := {name: keys.parse_hour(name) for name, kind, _ in parts if kind == "hour"}:
        indexes = [hour for _, hour in hours.values()]
        sums = history.sums(
            {model for model, _ in hours.values()}, since=min(indexes), until=max(indexes) + 1
        )
        rises = {model: rows.by_hour() for model, rows in sums.items()}
        found |= {
            name: Stored({"": rises[model].get(hour, 0)}) for name, (model, hour) in hours.items()
        }
    if hashes := [(kind, subject) for _, kind, subject in parts if kind not in {"", "hour"}]:
        found |= {
            keys.member(*name): Stored(counts)
            for name, counts in archive.breakdowns(hashes).items()
        }
    for model, rows in rows_by_model(names).items():
        counts = {rows[pk]: row for pk, row in row_counts.stored(model, list(rows)).items()}
        if conf.HISTORY:
            history.begin({subject: row for subject, row in counts.items() if row.views})
        sketches = archive.sketches(counts)
        for one, row in counts.items():
            found[one] = Stored({"": row.views}, sketches.get(one, b""), row.visitors)
    return found


def write_chunk(
    subjects: list[str],
    run: FlushRun,
    epoch: runs.SqlEpoch,
    *,
    changed: Container[str],
    archived: Container[str] = (),
) -> None:
    """Writes one chunk of totals, lifts those that SQL holds more of, and adds the numbers to the
    run.

    History is kept of the subjects in `changed`; others may have changed in an hour that is not
    known. Those in `archived` are archived, and all by an archiving flush.
    """
    live = _live(subjects, run, epoch)
    hour = run.flushed_until // archiving.HOUR
    run.orphans += len(live)
    portions = (
        (model, {pk: all_rows[pk] for pk in some})
        for model, all_rows in rows_by_model(live).items()
        # Neighbours share pages of the table. By their subjects, because not every primary key has
        # an order.
        for some in scripts.sliced(sorted(all_rows, key=all_rows.__getitem__), ROWS_LOCKED)
    )
    for model, rows in portions:
        write = partial(_write, model, rows, live, changed=changed, hour=hour)
        written = databases.retried(databases.of(row_counts.table_of(model)), write)
        run.written += len(written.raised)
        if written.ahead:
            stored = _stored([rows[pk] for pk in written.ahead])
            run.lifted += sum(scripts.run_all(*counters.lift(stored), patient=True))
        run.orphans -= len(rows) - len(
            written.missing
        )  # subjects of no model stay: an app may come back
        for some in scripts.parted([rows[pk] for pk in written.missing]):
            # Those whose row was missing before and is still missing.
            if ripe := scripts.run(removal.ripe_orphans(some, age=conf.ORPHAN_AGE), patient=True):
                scripts.run(removal.remove(ripe), patient=True)
                archive.delete(ripe)
        if locked := {rows[pk] for pk in written.locked}:
            run.locked += len(locked)
            counters.change(locked)
        # What was read of these is not what SQL stores by now.
        left = {*locked, *(rows[pk] for pk in (*written.ahead, *written.missing))}
        is_all = run.kind == run.Kind.ARCHIVE
        if due := {
            one: live[one]
            for one in rows.values()
            if (is_all or one in archived) and one not in left
        }:
            run.lifted += archiving.archive_changed(due, epoch, hour=hour)


def _live(subjects: list[str], run: FlushRun, epoch: runs.SqlEpoch) -> dict[str, RowCounts]:
    """Returns the views and visitors of the settled totals."""
    slices = scripts.parted(subjects)
    reads: list[scripts.Call[Any]] = []
    for some in slices:
        reads += (counters.settled_totals(some), uniques.visitors(some))
    reads += map(counters.epoch, dict.fromkeys(keys.tag(some[0]) for some in slices))
    answers, end = scripts.run_all(*reads, patient=True), 2 * len(slices)
    # SQL has to know the epoch of what it stores, or it could not tell a Redis that is restored
    # from before it.
    while not epoch.advance(answers[end:]):
        run.settled += settle(epoch)
        answers = scripts.run_all(*reads, patient=True)
    live: dict[str, RowCounts] = {}
    broken: list[str] = []
    for some, (found, totals), visitors in zip(
        slices, answers[:end:2], answers[1:end:2], strict=True
    ):
        run.read += found
        for subject, total in zip(some, totals, strict=True):
            if total is not None and counters.is_number(total):
                live[subject] = RowCounts(int(total), visitors[subject])
            elif total is not None:
                broken.append(subject)
    if broken:
        logger.warning(
            "Totals that are no numbers were not flushed: %s. Run: readtrack doctor",
            ", ".join(broken[:3]),
        )
    return live


def _write(
    model: type[Model], rows: Mapping[Any, str], live: Live, *, changed: Container[str], hour: int
) -> Written:
    # One transaction where both are in one database, so that a kill cannot come between count and
    # history.
    with transaction.atomic(using=databases.of(row_counts.table_of(model)).alias):
        written = row_counts.write(model, {pk: live[subject] for pk, subject in rows.items()})
        raised = [rows[pk] for pk in written.raised if rows[pk] in changed] if conf.HISTORY else ()
        history.store({subject: live[subject] for subject in raised}, hour=hour)
    return written


def write_hours(run: FlushRun, epoch: runs.SqlEpoch) -> None:
    """Writes the hours of models, lifts those that SQL holds more of, and adds the numbers to the
    run.
    """
    while (behind := store_hours(run.flushed_until // archiving.HOUR, tags=epoch.tags)) is None:
        run.settled += settle(epoch)
    run.lifted += sum(scripts.run_all(*counters.lift(behind), patient=True))


def store_hours(present: int, *, tags: Sequence[str] = ()) -> dict[str, Stored] | None:
    """Raises the last hours (since 1970). Returns those that Redis has less of; None if it has to
    be settled first.
    """
    since = present - MODEL_HOURS + 1
    tags, labels = tags or keys.tags(), [label_of(model) for model in counted_models()]
    calls = counters.model_hours(labels, range(since, present + 1), tags=tags)
    answers = scripts.run_all(*calls, *map(counters.epoch, tags), patient=True)
    live, current = counters.by_model(answers[: len(calls)]), answers[len(calls) :]

    def write() -> dict[str, Stored] | None:
        # One writer at a time, because rows are computed from the rows before them.
        with transaction.atomic(using=databases.of(History).alias):
            runs.lock_epoch()
            epoch = runs.SqlEpoch()
            epoch.known(current)  # in one query
            if not epoch.advance(current):
                return None
            behind, rows = dict[str, Stored](), []
            for model, stored in history.sums(live, since=since, until=history.FOREVER).items():
                known = stored.by_hour()
                total = row = stored.before
                for hour in sorted({*known, *live[model]}):
                    count, least = live[model].get(hour, Total(0)), known.get(hour, 0)
                    views = max(least, count.views) if count.is_settled else least
                    total, row = total + views, row + least
                    if total > row and (views or hour in known):
                        rows.append((model, hour, total, 0))
                    if hour in live[model] and count.is_settled and count.views < least:
                        behind[keys.hour_name(model, hour)] = Stored({"": least})
            databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
        return behind

    return databases.retried(databases.of(History), write)
