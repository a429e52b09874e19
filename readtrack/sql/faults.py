"""What a flush cannot store: one bad row costs that row, one bad model costs that model."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from django.db import Error
from django.db.models import Model

from readtrack.lines import one_line
from readtrack.models import FlushRun
from readtrack.sql import absent, databases, vendors
from readtrack.store.connection import RedisError
from readtrack.subjects import NO_VALUE, label_in, model_with_label

Result = TypeVar("Result")
Subjects = Sequence[str]
Write = Callable[[Subjects], object]

# Errors that one row or one model may have.
FAILURES = (Error, *NO_VALUE)
EXAMPLES = 3  # subjects of each model and error that a text names
ADVICE = "Run: manage.py migrate"
MOST_LINES = 20  # of a text
MOST_OF_ERROR = 200  # characters of an error that a text has
# Subjects that are tried one by one. If all of them fail, the fault is not theirs.
SAMPLE = 8


class Faults:
    """The subjects and models that a flush could not read or write, and why."""

    def __init__(self) -> None:
        self.failed: set[str] = set()  # subjects, and labels of models that failed as a whole
        self.locked: set[str] = set()  # subjects that other transactions were in the way of
        # What failed, by the label of its model and the text of the error.
        self._by_reason: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._absent_tables: set[str] = set()  # names of tables that the database lacks
        # By the label of a model of which nothing more is tried.
        self._given_up: dict[str, Exception] = {}

    def __str__(self) -> str:
        """Returns a line for each model and error, with some of the subjects."""
        lines = []
        if self._absent_tables:
            tables = ", ".join(sorted(self._absent_tables))
            lines.append(f"The database lacks {tables}, so nothing of them is stored. {ADVICE}")
        for (label, reason), subjects in self._by_reason.items():
            named = ", ".join(sorted(subjects)[:EXAMPLES])
            if len(subjects) > EXAMPLES:
                lines.append(f"{label}, {len(subjects):,} rows, such as {named}: {reason}")
            else:
                lines.append(f"{named}: {reason}")
        return "\n".join(lines[:MOST_LINES])

    def store(self, subjects: Subjects, write: Write) -> set[str]:
        """Writes the subjects by one call of `write`, or reads them. If that fails, it calls
        `write` for fewer and fewer of them, until only those are left that fail by themselves. So
        `write` may be called again for subjects that it has written.

        Returns the subjects that failed. Raises redis.RedisError, and any error while the database
        of the app's own tables is down.
        """
        error_of_all = None
        if not self._given_up:
            error_of_all = _try_write(write, subjects)
            if error_of_all is None:
                return set()
        by_label: defaultdict[str, list[str]] = defaultdict(list)
        for subject in subjects:
            by_label[label_in(subject)].append(subject)
        failed: set[str] = set()
        for label, group in by_label.items():
            error = error_of_all
            if error is None or len(by_label) > 1:  # this group was not tried by itself yet
                error = self._try_model(label, group, write)
            if error is not None:
                failed |= self._divide(group, write, error)
        return failed

    def _try_model(self, label: str, subjects: Subjects, write: Write) -> Exception | None:
        """Tries to write the subjects of the model `label`, unless the model was given up.

        Returns the error, None if they are written.
        """
        return self._given_up.get(label) or _try_write(write, subjects)

    def leave_out(self, tables: Iterable[type[Model]]) -> None:
        """Notes tables of the app that the database lacks."""
        names = {model._meta.db_table for model in tables}
        self._absent_tables |= names
        self.failed |= names

    def refuse(self, subjects: Subjects, error: Exception) -> None:
        """Notes subjects of one model that the database hides, or does not let the flush change."""
        self._add(label_in(subjects[0]), subjects, error)

    def attempt(self, label: str, call: Callable[[], Result], default: Result) -> Result:
        """Returns what the call returns, which is about the model `label`; the default if
        it fails. Raises as `store` does.
        """
        error = self._given_up.get(label)
        if error is None:
            try:
                return call()
            except FAILURES as failure:
                _raise_while_down(failure)
                error = failure
        if not vendors.is_lock_timeout(error):
            self._add(label, [label], error)
        return default

    def _divide(
        self, subjects: Subjects, write: Write, error: Exception, *, is_first: bool = True
    ) -> set[str]:
        """Writes one half of the subjects after the other. They are of one model, and failed
        together by that error. Returns those that failed by themselves.
        """
        label = label_in(subjects[0])
        if self._is_fault_of_model(label, error):
            self._given_up[label] = error
            return self._leave(subjects, error)
        if len(subjects) == 1 or (is_first and _is_of_all(subjects, write, error)):
            return self._leave(subjects, error)
        half = len(subjects) // 2
        failed: set[str] = set()
        for part in (subjects[:half], subjects[half:]):
            error_of_part = _try_write(write, part)
            if error_of_part is not None:
                failed |= self._divide(part, write, error_of_part, is_first=False)
        return failed

    def _is_fault_of_model(self, label: str, error: Exception) -> bool:
        """Returns True if every further try would fail, and wait as long: the table is locked, or
        is in another database, which is down.
        """
        if vendors.is_lock_timeout(error):
            return True
        model = model_with_label(label)
        return model is not None and databases.is_down(databases.of(model))

    def _leave(self, subjects: Subjects, error: Exception) -> set[str]:
        """Notes subjects that are not written. Returns them."""
        if vendors.is_lock_timeout(error) or vendors.is_conflict(error):
            self.locked.update(subjects)
        else:
            self._add(label_in(subjects[0]), subjects, error)
        return set(subjects)

    def _add(self, label: str, names: Sequence[str], error: Exception) -> None:
        """Notes the error of a model, and the names of its subjects, or its label, that failed."""
        first_line, _, _ = str(error).strip().partition("\n")
        reason = one_line(f"{type(error).__name__}: {first_line}"[:MOST_OF_ERROR])
        self.failed.update(names)
        self._by_reason[label, reason].update(names)


def _try_write(write: Write, subjects: Subjects) -> Exception | None:
    """Returns the error by which the write fails, None if it does not."""
    try:
        write(subjects)
    except FAILURES as error:
        _raise_while_down(error)
        return error
    return None


def _raise_while_down(error: Exception) -> None:
    """Raises an error of Redis, any error while the database of the app's own tables is down, and
    that of a table of the app which the database lacks.
    """
    if isinstance(error, RedisError) or databases.is_down(databases.of(FlushRun)):
        raise error
    if absent.is_newly_absent(error):
        raise error


def _is_of_all(subjects: Subjects, write: Write, error: Exception) -> bool:
    """Returns True if each of some subjects fails by itself, too, so that all others would."""
    if len(subjects) <= SAMPLE or vendors.is_conflict(error):  # fewer rows meet fewer conflicts
        return False
    return all(_try_write(write, [subject]) for subject in random.sample(subjects, SAMPLE))
