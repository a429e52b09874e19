"""Starting with no dots: everything is marked as read for a whole site, or for a new account."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Max, Model

from readtrack import subjects
from readtrack.hits import readers
from readtrack.progress import Progress, no_progress
from readtrack.sql import databases, read_states
from readtrack.store import connection, keys, read_state, scripts

# What one script writes at most. The server is busy with it for some milliseconds.
BYTES_AT_ONCE = 10_000_000


def start_as_read(model: type[Model], *, progress: Progress = no_progress) -> int:
    """Marks each row of the model as read for all users. A row for which something is published
    meanwhile stays unread. Where Redis numbers the readers, each user first gets an ordinal.

    `progress` is told the number of rows. Returns the number of rows that were marked. It may
    be started again. Raises redis.RedisError or django.db.Error.
    """
    read_states.ensure_begun()
    as_of = connection.server_time(patient=True)
    form = read_state.form_of(subjects.label_of(model))
    if form.is_by_reader:
        scripts.run_all(*form.mark_all_for_everybody(as_of=as_of), patient=True)
        count = databases.rows(model).count()
        progress(count)
        return count
    if form.is_derived:  # the categories that its dots are made out of are marked
        return 0
    # The highest number of a reader in read state, by the tag of the partition.
    if readers.has_ordinals():
        highest_by_tag = give_ordinals()
    else:
        highest_by_tag = dict.fromkeys(keys.tags(), highest_number())
    bytes_of_row = form.size_of(max(highest_by_tag.values()))
    rows_at_once = max(1, min(scripts.SLICE, BYTES_AT_ONCE // bytes_of_row))
    count = 0
    for row_subjects in subjects_of_rows(model, rows_at_once):
        for portion in scripts.parted(row_subjects):
            highest = highest_by_tag[keys.tag(portion[0])]
            call = form.fill(portion, highest=highest, as_of=as_of)
            count += scripts.run(call, patient=True)
        progress(len(row_subjects))
    return count


def size_of_start(model: type[Model]) -> int:
    """Returns the memory of one row of the model that is read by everybody (bytes); 0 for a form
    that takes none by category.
    """
    form = read_state.form_of(subjects.label_of(model))
    if not form.bits:
        return 0
    return form.size_of(highest_number())


def start_reader(pk: Any) -> bool:
    """Marks everything as read for a new account, whose primary key is `pk`.

    Returns False if a server of a cluster was silent. Raises redis.RedisError, also while the read
    state that Redis lost is not restored.
    """
    reader = readers.reader_or_none(pk)
    if reader is None:
        return True
    read_states.ensure_begun()
    is_done = True
    for model in subjects.read_state_models():
        form = read_state.form_of(subjects.label_of(model))
        if form.is_derived:
            continue
        if form.is_by_reader:
            calls = form.mark_all(reader, page=read_state.PageTime(), absent=None)
            if None in scripts.run_all(*calls):
                is_done = False
            continue
        for row_subjects in subjects_of_rows(model, scripts.SLICE):
            answers = scripts.run_all(*read_state.marks(reader, row_subjects, absent=None))
            if None in answers:
                is_done = False
    return is_done


def highest_number() -> int:
    """Returns the highest number that a user has in read state, at least 0.

    The number is the user's primary key, or an ordinal (0, 1, 2, …) if Redis numbers the readers.
    """
    users = databases.rows(get_user_model())
    if readers.has_ordinals():
        highest = users.count() - 1
    else:
        highest = users.aggregate(highest=Max("pk"))["highest"] or 0
    return max(0, min(highest, readers.highest_possible()))


def give_ordinals() -> dict[str, int]:
    """Gives an ordinal to each user who has none yet.

    Returns the highest ordinal in each partition by tag, at least 0.
    """
    pks = databases.rows(get_user_model()).values_list("pk", flat=True).iterator()
    users = map(readers.reader_by_id, pks)
    highest = dict.fromkeys(keys.tags(), 0)
    while portion := list(islice(users, scripts.SLICE)):
        answers = scripts.run_all(*read_state.number(portion), patient=True)
        highest = dict(zip(keys.tags(), answers, strict=True))
    return highest


def subjects_of_rows(model: type[Model], size: int) -> Iterator[list[str]]:
    """Yields the subjects of all rows of the model in lists, `size` in each.

    Each list takes a query, so that no cursor stays open while the caller works.
    """
    rows = databases.rows(model).order_by("pk").values_list("pk", flat=True)
    page = list(rows[:size])
    while page:
        yield [subjects.subject_of_row(model, pk) for pk in page]
        page = list(rows.filter(pk__gt=page[-1])[:size])
