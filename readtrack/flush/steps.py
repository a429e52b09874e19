"""The steps of parts in a flush: the moments at which a flush calls them, in their order."""

from collections.abc import Collection, Container, Mapping, Sequence

from readtrack import parts
from readtrack.models import FlushRun
from readtrack.sql.epochs import SqlEpoch
from readtrack.sql.faults import Faults
from readtrack.sql.row_counts import RowCounts
from readtrack.store.counters import Name

Hashes = Mapping[Name, Mapping[str, int]]  # counts by the name of a hash, then by field


class Steps:
    """What one part does in one flush. Each step does nothing until a part overrides it.

    A step may raise django.db.Error or redis.RedisError, which ends the flush; the next one does
    what is missing. `faults.store` and `faults.attempt` keep a fault of some rows from the others.
    """

    def __init__(
        self, record: FlushRun, epoch: SqlEpoch, faults: Faults, *, must_compare: bool = False
    ) -> None:
        """Takes what the flush works with."""
        self.record = record
        self.epoch = epoch
        self.faults = faults
        # Everything is compared with SQL, because the last good flush is too long ago, or Redis was
        # restored.
        self.must_compare = must_compare
        # Subjects that may have been viewed since the last good flush.
        self.changed_subjects: Container[str] = ()
        # Subjects whose past a part is writing now: see `PartConfig.subjects_left_out`. There are
        # none unless everything is compared.
        self.left_out: frozenset[str] = frozenset()

    def begin(self) -> None:
        """Does what has to be done before the flush stores anything. The record of the flush has
        its kind and its times by now.
        """

    def changed(self, subjects: Sequence[str]) -> None:
        """Stores what changed of `subjects`, before their counts are stored."""

    def compare(self, subjects: Sequence[str]) -> None:
        """Stores what SQL lacks of `subjects`, before their counts are stored.

        It is called with all subjects if everything is compared, and otherwise not at all.
        """

    def in_transaction(self, counts: Mapping[str, RowCounts]) -> None:
        """Stores what belongs to these new counts, in the transaction that stores them.

        `counts` are by subject, and may have risen in hours that are not over.
        """

    def stored(self, subjects: Sequence[str]) -> None:
        """Stores what comes with the counts of `subjects`, which are stored."""

    def before_archive(self, counts: Mapping[str, RowCounts]) -> None:
        """Stores what Redis alone has of these subjects, which are archived then."""

    def hashes_of_idle(self, subjects: Sequence[str]) -> Hashes | None:
        """Stores the hashes of `subjects`, and returns them as they are stored.

        Then they leave Redis, unless they change before. They stay if the result is None.
        """
        return {}

    def lowered(self, subjects: Sequence[str]) -> None:
        """Corrects what another flush has written of `subjects` after they were reset, or after
        counts of them were taken back. Their rows were lowered to the live counts.
        """

    def reset_ends(self, subject: str) -> None:
        """Deletes what an earlier flush has written of the subject after its reset.

        No flush that began before the reset runs any more.
        """

    def finish(self, *, has_changes: bool) -> None:
        """Does what comes after the counts of all subjects. `has_changes` says if any may have
        changed.
        """

    def full(self, recently_viewed: Collection[str]) -> None:
        """Does what comes with a full flush, after `finish`."""

    def full_once(self) -> None:
        """Does what comes with a full flush, once for all partitions of a divided flush."""

    def archive_once(self) -> None:
        """Does what comes once a day, once for all partitions of a divided flush."""


def steps_of_parts(
    record: FlushRun, epoch: SqlEpoch, faults: Faults, *, must_compare: bool = False
) -> list[Steps]:
    """Returns the steps of the installed parts that take part in flushes."""
    steps = []
    for part in parts.installed():
        steps_of_part = part.flush_steps()
        if steps_of_part is not None:
            steps.append(steps_of_part(record, epoch, faults, must_compare=must_compare))
    return steps


def subjects_left_out() -> frozenset[str]:
    """Returns the subjects whose past the installed parts are writing now."""
    subjects: set[str] = set()
    for part in parts.installed():
        subjects |= part.subjects_left_out()
    return frozenset(subjects)
