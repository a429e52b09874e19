"""What a flush stores by time: history, visitors of days, breakdowns, and the lists made of
them.
"""

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from readtrack import buckets
from readtrack.flush.steps import Hashes, Steps
from readtrack.models import FlushRun
from readtrack.numbers import hours_of_models, live_counters
from readtrack.numbers.flush import (
    breakdowns,
    day_visitors,
    groups,
    late_views,
    lowered,
    readers,
)
from readtrack.numbers.flush.breakdowns import Hours
from readtrack.numbers.flush.hours import write_hours
from readtrack.numbers.flush.late_views import NOTHING_LATE, LateViews
from readtrack.numbers.models import Breakdown, History
from readtrack.numbers.options import numbers_options
from readtrack.numbers.sql import (
    day_breakdowns,
    history,
    history_months,
    model_sums,
    popular,
    thinning,
    usual_renewal,
)
from readtrack.numbers.sql import hashes as stored_hashes
from readtrack.sql import absent, databases
from readtrack.sql.row_counts import RowCounts
from readtrack.store import keys, resetting, scripts
from readtrack.store.circuit import SilentError
from readtrack.store.counters import Name, Stored
from readtrack.subjects import subject_column


class NumbersSteps(Steps):
    """The steps of history, in the order in which a flush calls them."""

    late: Mapping[str, LateViews] = NOTHING_LATE  # of the chunk that is being compared

    @property
    def hour(self) -> int:
        """Returns the present hour (since 1970)."""
        return buckets.hour_of(self.record.flushed_until)

    @property
    def hours(self) -> Hours:
        """Returns the hours under which this flush and those before it store."""
        # Later than the times of all earlier flushes, even if Redis's clock was set back.
        newest_flush = buckets.hour_of(self.record.redis_time)
        return Hours(self.hour, newest_flush)

    @property
    def at(self) -> datetime:
        """Returns the present time, by Redis's clock."""
        return buckets.time_of(self.record.flushed_until)

    def begin(self) -> None:
        if self.record.kind != FlushRun.Kind.CHANGED and history.is_kept():
            history_months.add_months(at=self.at)

    def changed(self, subjects: Sequence[str]) -> None:
        # The stages of views come before the views, so that no more are stored as seen than as
        # viewed. Where everything is compared, some may have hashes without a total.
        if not live_counters.have_hashes(subjects):
            return
        if self.must_compare:
            self.compare(subjects)
        else:
            self._store_hashes(subjects)

    def compare(self, subjects: Sequence[str]) -> None:
        self.late = NOTHING_LATE
        if history.is_kept():
            self.late = late_views.find(
                subjects, present=self.hour, faults=self.faults, without=self.left_out
            )
        self._store_hashes(subjects)

    def _store_hashes(self, subjects: Sequence[str]) -> None:
        """Stores the counts of the subjects' hashes."""
        hours = self.hours._replace(late=self.late)
        store = partial(breakdowns.store, epoch=self.epoch, hours=hours)
        self.faults.store(subjects, store)

    def in_transaction(self, counts: Mapping[str, RowCounts]) -> None:
        if not (numbers_options().history and counts):
            return
        late = {subject: self.late[subject] for subject in counts if subject in self.late}
        newest_flush = self.hours.newest_flush
        late_rows = late_views.rows_of_history(late, counts, present=self.hour)
        history.store_hours(late_rows, newest_flush=newest_flush)
        in_time = {subject: row for subject, row in counts.items() if subject not in late}
        history.store(in_time, hour=self.hour, newest_flush=newest_flush)

    def stored(self, subjects: Sequence[str]) -> None:
        if not numbers_options().history:
            return
        days = day_visitors.last_days(self.at)
        if self.must_compare or self.record.kind == FlushRun.Kind.ARCHIVE:
            days = day_visitors.all_days(self.at)
        else:
            subjects = [subject for subject in subjects if subject in self.changed_subjects]
        if subjects:
            self.faults.store(subjects, partial(day_visitors.store, days=days))

    def before_archive(self, counts: Mapping[str, RowCounts]) -> None:
        # All other flushes have stored the hashes of what changed by now.
        if self.record.kind == FlushRun.Kind.ARCHIVE:
            breakdowns.store([*counts], self.epoch, hours=self.hours, most_seen=counts)

    def hashes_of_idle(self, subjects: Sequence[str]) -> Hashes | None:
        if absent.is_absent(Breakdown):  # it is not known what SQL has
            return None
        # A funnel may gain steps without a view.
        return breakdowns.store(subjects, self.epoch, hours=self.hours)

    def lowered(self, subjects: Sequence[str]) -> None:
        self.faults.store([*subjects], lowered.correct)

    def reset_ends(self, subject: str) -> None:
        lowered.correct([subject])  # a flush may have been killed before it did that
        _delete_late_fields(subject)
        breakdowns.store([subject], self.epoch, hours=self.hours)

    def finish(self, *, has_changes: bool) -> None:
        is_full = self.record.kind != FlushRun.Kind.CHANGED
        if history.is_kept() and (is_full or has_changes or self.record.settled):
            write_hours(self.record, self.epoch, self.faults, must_compare=self.must_compare)

    def full(self, recently_viewed: Collection[str]) -> None:
        if not self.must_compare:
            present = buckets.hour_index(self.at)
            live_counters.shorten_hours(recently_viewed, present=present)

    def full_once(self) -> None:
        """Stores the numbers of readers, and renews the lists of the most viewed, the sums of
        models, categories and authors, and what is usual.
        """
        if not history.is_kept():
            return
        # While a server of a cluster is silent, the numbers of readers stay as they were.
        with suppress(SilentError):
            readers.store(at=self.at, faults=self.faults)
        popular.renew(at=self.at, faults=self.faults)
        databases.retried(databases.of(History), partial(model_sums.renew_sums, at=self.at))
        # While the server that unites visitors is silent, the next full flush goes on from here.
        with suppress(SilentError):
            groups.renew(at=self.at, faults=self.faults)
        usual_renewal.renew(at=self.at, faults=self.faults)

    def archive_once(self) -> None:
        """Thins history, and makes the blocks of days that are over."""
        if not absent.is_absent(History):
            databases.retried(databases.of(History), partial(thinning.thin, at=self.at))
        day_visitors.roll_up(at=self.at)


def _delete_late_fields(subject: str) -> None:
    """Deletes each stored count of the subject's hashes that is above the live count, with what it
    gained by the day. They stay if the reset is no longer noted.
    """
    stored = stored_hashes.breakdowns([(kind, subject) for kind in keys.hash_kinds()])
    hash_calls = live_counters.hashes([subject], keys.hash_kinds())
    note_call = resetting.noted([subject])
    scripts.run_all(*hash_calls, note_call, patient=True)
    if subject not in note_call.result:
        return
    hashes = ChainMap(*(call.result for call in hash_calls))
    for name, counts in stored.items():
        live = hashes[name].counts
        late_fields = [field for field, count in counts.items() if count > live.get(field, 0)]
        highest = max(counts.values(), default=0)  # as the floor, so that all of them are deleted
        stored_hashes.delete_fields(name, late_fields, floor=highest)
        if late_fields:
            hash_kind, _ = name
            day_breakdowns.delete_fields(subject_column(subject), hash_kind, late_fields)


def stored_counters(counter_names: Sequence[str]) -> dict[str, Stored]:
    """Returns what SQL stores of hours of models and of hashes, by their names in
    `views:unsettled`. Counters whose table the database lacks are left out.
    """
    hours: list[str] = []
    hashes: list[Name] = []
    for name in counter_names:
        family, subject = keys.split_member(name)
        if family == "hour":
            hours.append(name)
        else:
            hashes.append((family, subject))
    stored: dict[str, Stored] = {}
    if hours and not absent.is_absent(History):
        stored.update(_stored_hours(hours))
    if hashes and not absent.is_absent(Breakdown):
        stored.update(_stored_hashes(hashes))
    return stored


def _stored_hours(counter_names: Sequence[str]) -> Mapping[str, Stored]:
    """Returns SQL's views of each hour of a model, by the names of the counters."""
    model_hours = {name: hours_of_models.parse_hour(name) for name in counter_names}
    models = {model for model, _ in model_hours.values()}
    hours = [hour for _, hour in model_hours.values()]
    sums = history.sums(models, since=min(hours), until=max(hours) + 1)
    views_by_hour = {model: stored.by_hour() for model, stored in sums.items()}
    stored_hours = {}
    for name, (model, hour) in model_hours.items():
        views = views_by_hour[model].get(hour, 0)
        stored_hours[name] = Stored({"": views})
    return stored_hours


def _stored_hashes(hashes: Sequence[Name]) -> Mapping[str, Stored]:
    """Returns SQL's counts of each hash, by the names of the counters."""
    breakdowns_by_name = stored_hashes.breakdowns(hashes)
    return {keys.member(*name): Stored(counts) for name, counts in breakdowns_by_name.items()}


def settled(counts: Mapping[str, RowCounts]) -> None:
    """Begins the history of those subjects that have views and no history yet."""
    if numbers_options().history:
        history.begin({subject: row for subject, row in counts.items() if row.views})
