"""Functions by which a site changes counts and read state."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any

from asgiref.sync import sync_to_async
from django.db import router
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from readtrack import buckets, parts, renames, subjects
from readtrack.flush import resets
from readtrack.hits import bots, readers, visitors
from readtrack.hits.hit import Hit, Outcome, Reason
from readtrack.models.tracked import StoredCount, Tracked
from readtrack.progress import no_progress
from readtrack.sql import read_states
from readtrack.store import clock, day_keys, erasure, keys, read_state, scripts
from readtrack.store.erasure import Erased
from readtrack.store.recording import record as record
from readtrack.store.sending import sending
from readtrack.store.skips import NAME_PREFIX, NAMED_REASONS, key_of, skip_buffer
from readtrack.store.trending import refresh_trending as refresh_trending
from readtrack.unread.outbox import resend as resend
from readtrack.unread.publishing import mark_unread as mark_unread
from readtrack.unread.publishing import publish as publish
from readtrack.unread.publishing import publish_to as publish_to
from readtrack.unread.publishing import unpublish as unpublish
from readtrack.unread.publishing import unpublish_from as unpublish_from


def skip(
    views: Iterable[str],
    reason: Reason,
    *,
    is_alone: bool = True,
    at: datetime | None = None,
    agent: str | None = None,
) -> Outcome:
    """Counts the views of these subjects as skips, and returns them as an outcome.

    With `agent`, robots and assistants are also counted by name. The skips wait in `skip_buffer`,
    which is sent once a second at most: here, or without `is_alone` in the round trip of the
    request's hit.
    """
    skipped = dict.fromkeys(views, reason)
    count_skips(len(skipped), reason, at=at or clock.now(), agent=agent)
    if is_alone and perf_counter() >= skip_buffer.due:
        _send_skips()
    return Outcome((), skipped)


def count_skips(number: int, reason: Reason, *, at: datetime, agent: str | None) -> None:
    """Adds `number` skips with this reason to those that wait to be sent, for the hour of `at`.

    If `agent`, the user agent, is given, a robot or an assistant is also counted by its name.
    """
    fields_to_raise: list[str] = [reason]
    if reason in NAMED_REASONS and agent is not None:
        fields_to_raise.append(NAME_PREFIX + bots.name_of(agent))
    skip_buffer.add(key_of(at), fields_to_raise * number)


def _send_skips() -> None:
    """Sends the skips that wait, unless a part sends them later."""
    if not sending().take_skips():
        skip_buffer.send_rest()


def visitor(request: HttpRequest) -> visitors.Visitor:
    """Returns the request's visitor, to call `view` or `step` outside of the request.

    Takes one round trip at most. Raises redis.RedisError.
    """
    visitor = visitors.visitor(request, visitors.signed_in(request))
    return day_keys.resolve(visitor, at=buckets.now())


def view(obj: Model, *, visitor: visitors.Visitor) -> bool:
    """Records a view of the object outside of the site's pages: by a socket, by GraphQL, in an app.

    RATE and WINDOW hold as for a page, but the caller has to leave robots out. Takes one round
    trip. Returns True if the view counted. Raises TypeError for an object whose views are not
    counted and for a visitor of another type than `tracker.visitor` returns, and redis.RedisError.
    """
    _check_visitor(visitor)
    subject = subjects.counted_subject_of(obj)
    outcome = record(Hit(visitor, clock.now(), views=(subject,)))
    return bool(outcome.counted)


def _check_visitor(visitor: Any) -> None:
    """Raises TypeError for a visitor of another type than `tracker.visitor` returns."""
    if not isinstance(visitor, visitors.Visitor):
        raise TypeError(
            f"visitor is {visitor!r}, a {type(visitor).__name__}. Pass tracker.visitor(request); or"
            " without a request readtrack.hits.visitors.Visitor('…') with an id of your own."
        )


def step(obj: Model, stage: str, *, visitor: visitors.Visitor) -> bool:
    """Records a step to a stage of the object's funnel, in one round trip.

    Returns True if the visitor had not reached the stage within the last hour. Raises ValueError
    for a stage that the funnel lacks, TypeError for a visitor of another type, and
    redis.RedisError.
    """
    _check_visitor(visitor)
    subjects.check_stage(stage)
    hit = Hit(visitor, clock.now(), steps=((subjects.subject_of(obj), stage),))
    return bool(record(hit).steps)


def mark_read(user: Any, objs: Iterable[Model], *, as_of: int | None = None) -> None:
    """Marks the categories read for the user, in one round trip for every 1,000 categories.

    Does nothing for anonymous users. `as_of` is the result of `reports.as_of()` from before the
    content was fetched: categories that were published to since then stay unread. Raises
    redis.RedisError, readers.ReaderError for a user id out of bounds, and TypeError for an object
    that is no user of this site, or for one without read state.
    """
    pk = readers.id_of(user)
    categories = subjects.category_subjects(objs)
    if pk is not None:
        mark_subjects_read(readers.reader_by_id(pk), categories, as_of=as_of)


def mark_all_read(
    user: Any,
    objs: type[Model] | Iterable[Model],
    *,
    within: Model | None = None,
    as_of: int | None = None,
    older_than: timedelta | None = None,
) -> None:
    """Marks all rows of a model or of a queryset read, like `mark_read`, without loading them.

    Two arguments are only for a model whose read state is kept by reader, where this is one write,
    whatever is unread. `within` is an object, such as a board of a forum: only what is in it is
    marked. `older_than` is an age: only what was published before that is marked. Raises TypeError
    for another model with one of them.
    """
    if isinstance(objs, type) and issubclass(objs, Model):
        form = read_state.form_of(subjects.label_of(objs))
        if form.is_by_reader:
            _mark_model_read(user, form, within=within, as_of=as_of, older_than=older_than)
            return
    if within is not None or older_than is not None:
        raise TypeError("within and older_than are for a model whose read state is kept by reader.")
    if isinstance(objs, type):
        objs = objs._default_manager.all()
    if isinstance(objs, QuerySet):
        _mark_rows_read(user, objs, as_of=as_of)
    else:
        mark_read(user, objs, as_of=as_of)


def _mark_rows_read(user: Any, rows: QuerySet[Any, Any], *, as_of: int | None) -> None:
    """Marks all rows of a queryset read, without loading them."""
    problem = subjects.why_no_read_state(rows.model)
    if problem:
        raise TypeError(problem)
    pk = readers.id_of(user)
    if pk is None:
        return
    # Without `iterator`, whose cursor does not work behind every pooler of connections.
    pks = rows.values_list("pk", flat=True)
    categories = [subjects.subject_of_row(rows.model, row_pk) for row_pk in pks]
    mark_subjects_read(readers.reader_by_id(pk), categories, as_of=as_of)


def _mark_model_read(
    user: Any,
    form: read_state.Form,
    *,
    within: Model | None,
    as_of: int | None,
    older_than: timedelta | None,
) -> None:
    """Marks all rows of the form's model read for the user, or those within an object.

    What was published after `as_of` stays unread, and so does what is younger than `older_than` at
    that time. Does nothing for an anonymous user.
    """
    subject = ""
    if within is not None:
        subject = subjects.subject_of(within)
        form.check_within(subject)
    pk = readers.id_of(user)
    if pk is None:
        return
    if older_than is not None:
        if as_of is None:
            as_of = clock.recent()
        as_of -= older_than // timedelta(microseconds=1)
    read_until = read_state.page_time(as_of=as_of)
    scripts.run_all(*form.mark_all(readers.reader_by_id(pk), page=read_until, within=subject))


def mark_subjects_read(
    reader: readers.Reader, categories: Sequence[str], *, as_of: int | None = None
) -> list[str]:
    """Marks the categories with these subjects read for the reader, like `mark_read`.

    Returns the subjects of the categories that are read now.
    """
    read_categories: list[str] = []
    for portion in scripts.sliced(categories):
        marked = _mark(reader, portion, as_of=as_of)
        if not marked and read_state.not_begun(keys.tags()) and read_states.begin_new_site():
            marked = _mark(reader, portion, as_of=as_of)
        read_categories += marked
    return read_categories


def _mark(reader: readers.Reader, categories: Sequence[str], *, as_of: int | None) -> list[str]:
    """Marks the categories read. Returns the subjects of those that are read now."""
    calls = read_state.marks(reader, categories, as_of=as_of)
    read_categories: list[str] = []
    for marked in scripts.run_all(*calls):
        read_categories += marked
    return read_categories


aview = sync_to_async(view)


def erase(
    pk: Any, *, is_dry_run: bool = False, progress: Callable[[int], object] = no_progress
) -> Erased:
    """Erases the data that Redis has about the user with the primary key `pk`, SQL's copies of it,
    and what parts keep of the user. Returns how much it was.

    With `is_dry_run` it changes nothing, and returns how much would be erased. `progress` is called
    with the number of keys and copies looked at since the last call. Raises redis.RedisError or
    django.db.Error. After an error, call it again; it erases what is still there.
    """
    name = erasure.name_of(pk)
    ordinals = erasure.ordinals_of(name)
    erased = erasure.erase(pk, is_dry_run=is_dry_run, progress=progress)
    copies = read_states.erase(
        name,
        number=erasure.number_of(pk),
        ordinals=ordinals,
        is_dry_run=is_dry_run,
        progress=progress,
    )
    of_parts = sum(part.erase_user(pk, is_dry_run=is_dry_run) for part in parts.installed())
    return erased._replace(copies=copies, of_parts=of_parts)


amark_read = sync_to_async(mark_read)
amark_all_read = sync_to_async(mark_all_read)
amark_unread = sync_to_async(mark_unread)
apublish = sync_to_async(publish)


def reset_views(obj: Model) -> None:
    """Sets the object's counts to zero in Redis, in SQL and in the instance.

    Other instances of the row keep the counts that they have loaded. Raises redis.RedisError or
    django.db.Error; then call it again. If the transaction is rolled back, SQL keeps its counts
    until the next flush sets them to zero. Raises TypeError for an object that has no counts.
    """
    resets.reset([subjects.counted_subject_of(obj)])
    if isinstance(obj, Tracked):
        obj.view_count = obj.visitor_count = StoredCount()


def rename(obj: Model, *, before: Any) -> None:
    """Moves everything about the object to its present primary key, from the one `before`.

    Call it in the transaction that changes the key, such as a slug. Redis follows on commit.
    """
    former_subject = subjects.subject_in(subjects.label_of(type(obj)), before)
    using = router.db_for_write(type(obj), instance=obj)
    renames.rename_subject(former_subject, subjects.subject_of(obj), using=using)
