"""Imports tables of what users have read: with a time up to which something is read, or without."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import models
from django.utils.timezone import is_naive, make_aware

from readtrack import shipped
from readtrack.hits import readers, visitors
from readtrack.hits.readers import Reader
from readtrack.imports.ledger import ImportRefusedError, Report
from readtrack.imports.models import Import
from readtrack.imports.tables import pk_of
from readtrack.progress import Progress
from readtrack.sql import databases, read_states
from readtrack.store import connection, keys, read_state, scripts
from readtrack.subjects import has_read_state, label_of, model_with_label, subject_of_row

if TYPE_CHECKING:
    from readtrack.threads.forms import Boards, Threads

EPOCH = datetime.fromtimestamp(0, timezone.utc)
THREADS = 200  # that are entered in one round trip

TimedForm: TypeAlias = Union["Threads", "Boards"]


class Mark(NamedTuple):
    """A row that says up to when a user has read an object, or everything of a model."""

    user_pk: Any
    model: type[models.Model] | None  # of what is read; None if the row names none of this site
    form: TimedForm | None  # the model's read state, if it takes this mark
    pk: Any  # of the object, as the row has it; None for everything
    time: datetime


@dataclass(frozen=True, slots=True)
class TimeTable:
    """A table of the times up to which users have read something."""

    model: type[models.Model]
    user: str  # the path to the primary key of the user
    read_until: str  # the field with the time

    def marks_of_objects(
        self, key: str, *, model: type[models.Model], form: TimedForm
    ) -> Iterator[Mark]:
        """Yields the marks of a table whose foreign key leads to objects of the model."""
        for user_pk, time, pk in self._rows(f"{key}__pk"):
            yield Mark(user_pk, model, form, pk, time)

    def marks_of_any_objects(self, key: Any) -> Iterator[Mark]:
        """Yields the marks of a table that has a generic foreign key.

        A row without the primary key of an object is a mark of everything of its model. A mark of a
        board is not taken, because in such tables it says nothing of the board's threads.
        """
        model_by_type = self._models_by_type(key)
        for user_pk, time, type_pk, pk in self._rows(f"{key.ct_field}__pk", key.fk_field):
            model = model_by_type.get(type_pk)
            form = _positions_of(model)
            yield Mark(user_pk, model, form, pk, time)

    def marks_of_everything(self, model: type[models.Model], *, form: "Threads") -> Iterator[Mark]:
        """Yields the marks of a table whose rows stand for everything of the model."""
        for user_pk, time in self._rows():
            yield Mark(user_pk, model, form, None, time)

    def models_of(self, key: Any) -> list[type[models.Model]]:
        """Returns the models of the objects that a generic foreign key leads to."""
        named_models = self._models_by_type(key).values()
        return [model for model in named_models if model is not None]

    def _rows(self, first: str = "", *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yields user, time and these columns of each row that has a user, a time and the first
        column.
        """
        required = [self.user, self.read_until]
        if first:
            required.append(first)
        conditions = {f"{column}__isnull": False for column in required}
        rows = databases.rows(self.model).filter(**conditions)
        return rows.values_list(*required, *columns).iterator(chunk_size=scripts.SLICE)

    def _models_by_type(self, key: Any) -> dict[Any, type[models.Model] | None]:
        """Returns the models that rows name, by the primary key of their content type."""
        # Here, because a site without generic foreign keys may lack the app.
        from django.contrib.contenttypes.models import ContentType

        pks = databases.rows(self.model).values_list(f"{key.ct_field}__pk", flat=True)
        content_types = ContentType.objects.in_bulk(list(pks.order_by().distinct()))
        return {pk: content_type.model_class() for pk, content_type in content_types.items()}


def take_reads(
    label: str,
    *,
    user: str,
    category: str,
    all_of: str = "",
    read_until: str = "",
    published: Sequence[str] = (),
    dry_run: bool,
    progress: Progress,
) -> Report:
    """Marks categories as read for users, by the rows of a model that say who has read what.

    A category stays unread if something was published in it since the import was first started. The
    import may be started again. `label` is the label of the model, `user` and `category` are the
    names of its foreign keys. `progress` is told the number of rows. Returns the report. Raises
    ImportRefusedError if the model has no such foreign keys, or if the first start is so long ago
    that importing again could hide what is new.

    For categories with positions, and their boards, `read_until` is the name of the time up to
    which a row says that it is read. Then the times decide what is unread. `category` may be a
    generic foreign key; a row without an object then stands for everything of its model. With
    `all_of`, the label of a model, each row stands for everything of that model. `published` names
    the time of a category's last post: fields of the category, of which the first that has a value
    counts.
    """
    model = model_with_label(label)
    if model is None:
        raise ImportRefusedError(f"There is no model {label!r}.")
    if not read_until:
        if published or all_of or _generic_key(model, category):
            raise ImportRefusedError(f"{label} needs the name of its time, --read-until.")
        return _take_marks(model, user=user, category=category, dry_run=dry_run, progress=progress)
    if not apps.is_installed("readtrack.threads"):
        raise ImportRefusedError(shipped.missing("--read-until", "readtrack.threads"))
    if not _has_time(model, read_until):
        raise ImportRefusedError(f"{label} has no time {read_until!r}.")
    table = TimeTable(model, _path_to_user(model, user), read_until)
    read_models, marks = _what_is_read(table, category=category, all_of=all_of)
    if not dry_run:
        read_states.ensure_begun()
    if published:
        _enter_threads(read_models, field_names=published, dry_run=dry_run)
    return _take_times(marks, dry_run=dry_run, progress=progress)


def _take_marks(
    model: type[models.Model],
    *,
    user: str,
    category: str,
    dry_run: bool,
    progress: Progress,
) -> Report:
    """Marks categories as read for users, by the rows of a model without times."""
    path_to_user = _path_to_user(model, user)
    category_model = _category_model(model, category)
    as_of = 0
    if not dry_run:
        as_of = _first_start(f"reads:{model._meta.label_lower}:{user}:{category}")
    report = Report()
    columns = (path_to_user, f"{category}__pk")
    conditions = {f"{column}__isnull": False for column in columns}
    pks = databases.rows(model).filter(**conditions).values_list(*columns)
    rows = pks.iterator(chunk_size=scripts.SLICE)
    while chunk := list(islice(rows, scripts.SLICE)):
        subjects_by_reader: defaultdict[Any, list[str]] = defaultdict(list)
        for reader_pk, category_pk in chunk:
            reader = readers.reader_or_none(reader_pk)  # None for an id out of bounds
            subjects_by_reader[reader].append(subject_of_row(category_model, category_pk))
        report.skipped["id out of bounds"] += len(subjects_by_reader.pop(None, ()))
        to_mark = sum(map(len, subjects_by_reader.values()))
        marked = to_mark if dry_run else _mark(subjects_by_reader, as_of=as_of)
        report.counted += marked
        report.skipped["published to since the import began"] += to_mark - marked
        report.read += len(chunk)
        progress(len(chunk))
    return report


def _what_is_read(
    table: TimeTable, *, category: str, all_of: str
) -> tuple[list[type[models.Model]], Iterator[Mark]]:
    """Returns the models of what the table says is read, and its marks.

    Raises ImportRefusedError if these models cannot have positions.
    """
    from readtrack.threads.forms import Boards, Threads

    if all_of:
        model = model_with_label(all_of)
        positions = _positions_of(model)
        if model is None or positions is None:
            raise ImportRefusedError(
                "Only a model with 'read_state': 'positions' takes times of everything,"
                f" not {all_of}."
            )
        return [model], table.marks_of_everything(model, form=positions)
    generic_key = _generic_key(table.model, category)
    if generic_key is not None:
        return table.models_of(generic_key), table.marks_of_any_objects(generic_key)
    model = _category_model(table.model, category)
    form = read_state.form_of(label_of(model))
    if not isinstance(form, (Threads, Boards)):
        raise ImportRefusedError(
            f"Only a model with 'read_state': 'positions' takes times, not {model._meta.label}."
        )
    return [model], table.marks_of_objects(category, model=model, form=form)


def _positions_of(model: type[models.Model] | None) -> "Threads | None":
    """Returns the form of the model's read state if that is kept by reader, else None."""
    from readtrack.threads.forms import positions_of

    return positions_of(label_of(model)) if model else None


def _path_to_user(model: type[models.Model], name: str) -> str:
    """Returns the path to the primary key of the user whom a foreign key of the model names.

    In a table of users it is the primary key. Raises ImportRefusedError if the name leads to no
    user of this site.
    """
    users = get_user_model()
    # issubclass() is False for an empty tuple, which stands for no such foreign key.
    if issubclass(users, _related_models(model).get(name, ())):
        return f"{name}__pk"
    if issubclass(users, model) and name in ("pk", model._meta.pk.name):
        return "pk"
    raise ImportRefusedError(f"{model._meta.label} has to point at a user by {name!r}.")


def _category_model(model: type[models.Model], name: str) -> type[models.Model]:
    """Returns the model that a foreign key points at. Raises ImportRefusedError if that has no read
    state.
    """
    category_model: type[models.Model] | None = _related_models(model).get(name)
    if category_model is None or not has_read_state(category_model):
        raise ImportRefusedError(f"{model._meta.label} has to point by {name!r} at read state.")
    return category_model


def _related_models(model: type[models.Model]) -> dict[str, Any]:
    """Returns the models that the foreign keys of the model point at, by the names of the keys."""
    return {field.name: field.related_model for field in model._meta.fields if field.remote_field}


def _generic_key(model: type[models.Model], name: str) -> Any:
    """Returns the generic foreign key of the model called `name`, or None."""
    for field in model._meta.private_fields:
        if field.name == name and hasattr(field, "ct_field"):
            return field
    return None


def _has_time(model: type[models.Model], name: str) -> bool:
    """Returns True if the model has a field called `name` for a date and time."""
    return any(
        field.name == name and isinstance(field, models.DateTimeField)
        for field in model._meta.fields
    )


def _enter_threads(
    read_models: Sequence[type[models.Model]], *, field_names: Sequence[str], dry_run: bool
) -> None:
    """Enters the threads of the models that were published to within the `days` of THREADS.

    Raises ImportRefusedError if none of the models is one of threads and has these times.
    """
    forms = {model: _form_of_threads(model, field_names) for model in read_models}
    if not any(forms.values()):
        labels = ", ".join(model._meta.label for model in read_models) or "The table"
        times = " and ".join(map(repr, field_names))
        raise ImportRefusedError(f"{labels} has no threads with a time {times}.")
    for model, form in forms.items():
        if form is None or dry_run:
            continue
        rows = databases.rows(model).values_list("pk", *field_names)
        last_posts = _last_posts(rows.iterator(chunk_size=THREADS))
        while chunk := list(islice(last_posts, THREADS)):
            _enter({subject_of_row(model, pk): time for pk, time in chunk}, form)


def _form_of_threads(model: type[models.Model], field_names: Iterable[str]) -> "Threads | None":
    """Returns the form of the model's read state; None if it has no positions, or not these
    times.
    """
    if all(_has_time(model, name) for name in field_names):
        return _positions_of(model)
    return None


def _last_posts(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, int]]:
    """Yields the primary key and the time (µs) of each row that has one.

    A row has several times, of which the first that is not None counts.
    """
    for pk, *times in rows:
        known_times = [time for time in times if time is not None]
        if known_times:
            yield pk, _microseconds(known_times[0])


def _enter(times: Mapping[str, int], positions: "Threads") -> None:
    """Enters threads by the times (µs) of their last posts, and places them in their boards.

    A thread of which Redis knows a later publication keeps what it has. `times` has the times by
    the subject of the thread.
    """
    from readtrack.threads.boards import boards_of
    from readtrack.threads.positions import kept_for

    now = connection.server_time(patient=True)
    earliest = now - kept_for()
    recent = {subject: time for subject, time in times.items() if time >= earliest}
    known_times: dict[str, int] = {}
    for known in scripts.run_all(*read_state.last_published([*recent]), patient=True):
        known_times.update(known)
    boards = boards_of(recent)
    calls: list[scripts.Call[int]] = []
    for subject, time in recent.items():
        if time > known_times.get(subject, 0):
            calls += positions.enter(subject, published=time, now=now)
        calls.append(positions.place(subject, boards.get(subject, [])))
    scripts.run_all(*calls, patient=True)


def _take_times(marks: Iterator[Mark], *, dry_run: bool, progress: Progress) -> Report:
    """Raises the positions of readers to the times of the marks. A time in the future is taken for
    now.
    """
    from readtrack.threads.forms import Threads
    from readtrack.threads.positions import ALL

    report = Report()
    now = connection.server_time(patient=True)
    while chunk := list(islice(marks, scripts.SLICE)):
        calls: list[scripts.Call[int]] = []
        for (reader, form), times in _times(chunk, report, now=now).items():
            everything = times.pop(ALL, None)
            calls += form.raise_positions(reader, times)
            if everything is not None and isinstance(form, Threads):
                calls += form.raise_all(reader, everything)
        if not dry_run:
            scripts.run_all(*calls, patient=True)
        report.read += len(chunk)
        progress(len(chunk))
    return report


def _times(
    marks: Sequence[Mark], report: Report, *, now: int
) -> dict[tuple[Reader, TimedForm], dict[str, int]]:
    """Returns the times (µs) of the marks by reader and form, then by what is read: the subject of
    an object, or ALL for everything.

    Reports all marks, also those that are left out.
    """
    from readtrack.threads.positions import ALL, kept_for

    subjects = _existing_subjects(marks)
    earliest = now - kept_for()
    times: defaultdict[tuple[Reader, TimedForm], dict[str, int]] = defaultdict(dict)
    for mark in marks:
        if mark.form is None:
            label = mark.model._meta.label if mark.model else "?"
            report.skipped[f"no positions: {label}"] += 1
            continue
        name = ALL if mark.pk is None else subjects.get((mark.model, mark.pk))
        if name is None:
            report.skipped["no such object"] += 1
            continue
        # What was published at that very time is read.
        read_until = min(now, _microseconds(mark.time) + 1)
        if read_until < earliest:
            report.skipped["older than the days of THREADS"] += 1
            continue
        reader = readers.reader_or_none(mark.user_pk)
        if reader is None:
            report.skipped["id out of bounds"] += 1
            continue
        times_of_reader = times[reader, mark.form]
        times_of_reader[name] = max(times_of_reader.get(name, 0), read_until)
        report.counted += 1
    return times


def _existing_subjects(marks: Iterable[Mark]) -> dict[tuple[type[models.Model] | None, Any], str]:
    """Returns the subjects of the objects that exist, by model and by primary key as in the
    mark.
    """
    pks_by_model: defaultdict[type[models.Model], set[Any]] = defaultdict(set)
    for mark in marks:
        if mark.model is not None and mark.pk is not None:
            pks_by_model[mark.model].add(mark.pk)
    subjects: dict[tuple[type[models.Model] | None, Any], str] = {}
    for model, pks_in_marks in pks_by_model.items():
        pks = {pk_in_mark: pk_of(model, pk_in_mark) for pk_in_mark in pks_in_marks}
        existing_pks = _existing_pks(model, pks.values())
        for pk_in_mark, pk in pks.items():
            if pk in existing_pks:
                subjects[model, pk_in_mark] = subject_of_row(model, pk)
    return subjects


def _existing_pks(model: type[models.Model], pks: Iterable[Any]) -> set[Any]:
    """Returns those of the primary keys that a row of the model has. None is no primary key."""
    existing_pks: set[Any] = set()
    for rows in databases.with_keys(model, [pk for pk in pks if pk is not None]):
        existing_pks.update(rows.values_list("pk", flat=True))
    return existing_pks


def _microseconds(time: datetime) -> int:
    """Returns the time in microseconds since 1970. A naive one is of the active time zone."""
    if is_naive(time):
        time = make_aware(time)
    return (time - EPOCH) // timedelta(microseconds=1)


def _first_start(source: str) -> int:
    """Returns Redis's time (µs) when this import was first started.

    It is stored at the first start, because the table does not say what was read of later
    publications. Raises ImportRefusedError if Redis has lost its read state since then.
    """
    read_states.ensure_begun()
    now = connection.server_time(patient=True)
    record, _ = databases.rows(Import).get_or_create(
        source=visitors.digest("import", source), defaults={"name": source, "position": now}
    )
    if record.position < _known_since():
        raise ImportRefusedError(
            f"{record} was imported on {record.started:%Y-%m-%d}, and importing it again could hide"
            " what is new since. Delete its row of readtrack's imports to do so all the same."
        )
    return int(record.position)


def _known_since() -> int:
    """Returns since when Redis knows all publications, of all partitions (µs).

    Raises redis.RedisError.
    """
    calls = [scripts.Call("GET", [keys.reads_began(tag)], (), int) for tag in keys.tags()]
    times: list[int] = scripts.run_all(*calls, patient=True)
    return max(times)


def _mark(subjects_by_reader: Mapping[Any, Sequence[str]], *, as_of: int) -> int:
    """Marks categories as read for each reader, unless something was published in them since that
    time (µs of Redis's clock). Returns how many were marked.
    """
    calls: list[scripts.Call[Any]] = []
    for reader, subjects in subjects_by_reader.items():
        calls += read_state.marks(reader, list(set(subjects)), as_of=as_of)
    marked_subjects = scripts.run_all(*calls, patient=True)  # of each call
    return sum(map(len, marked_subjects))
