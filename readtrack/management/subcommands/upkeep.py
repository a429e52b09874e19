"""The subcommands that call one function, and return a text that says what was done."""

from importlib.resources import files
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.db.models import Model

from readtrack import tracker, unread
from readtrack.conf import conf
from readtrack.doctor.findings import counted, size
from readtrack.flush import run
from readtrack.flush.resets import reset_model
from readtrack.models import History
from readtrack.sql import daily, databases
from readtrack.store import moving
from readtrack.subjects import has_read_state, is_counted, model_with_label, owner, read_state_models

FIGURES = ("read", "written", "settled", "lifted", "orphans", "locked")


def flush(*, bar: Any, changed: bool, partition: str, **options: Any) -> str:
    if partition and int(partition.partition("/")[2]) > conf.PARTITIONS:
        raise CommandError(f"READTRACK['PARTITIONS'] is {conf.PARTITIONS}, so there is no part {partition}.")
    tracker.resend()
    with bar(desc="Flushing", unit=" totals") as shown:
        done = run.flush(only_changed=changed, part=partition, progress=shown.update)
    if changed:
        tracker.refresh_trending()
    figures = [f"{name:8} {getattr(done, name):>12,}" for name in FIGURES]
    return "\n".join([*figures, f"{'seconds':8} {done.took.total_seconds() if done.took else 0:>12.2f}"])


def repartition(*, bar: Any, **options: Any) -> str:
    before, after = moving.known_layout() or conf.PARTITIONS, conf.PARTITIONS
    if after % before:
        raise CommandError(f"Redis has {before} partitions. Set READTRACK['PARTITIONS'] to a multiple of that.")
    if before != after:
        with moving.layout(before):
            done = run.flush()
        if done.locked:  # their views would be lost where a process of the new number has begun the total anew
            raise CommandError(f"{counted(done.locked, 'row')} locked by another transaction. Start again.")
    with bar(desc="Moving", unit=" keys") as shown:
        copied = moving.move(before, progress=shown.update)
    return f"Moved {counted(copied, 'key')} from {before} to {counted(after, 'partition')}."


def reset(*, bar: Any, model: str, **options: Any) -> str:
    found = model_with_label(model)
    if found is None or not (is_counted(found) or has_read_state(found)):
        raise CommandError(f"{model!r} is no model with counts or read state. Name it as app_label.ModelName.")
    with bar(desc="Resetting", unit=" objects") as shown:
        done = reset_model(found, progress=shown.update)
    return f"Reset {counted(done, 'object')} of {found._meta.label}."


def start_as_read(*, bar: Any, dry_run: bool, model: list[str] | None, **options: Any) -> str:
    models = list(map(_with_read_state, model or ())) or read_state_models()
    rows = sum(databases.rows(one).count() for one in models)
    each = unread.size_of(unread.highest_position())
    if not dry_run:
        with bar(desc="Marking", unit=" objects", total=rows) as shown:
            rows = sum(unread.start_as_read(one, progress=shown.update) for one in models)
    verb = "It would mark" if dry_run else "Marked"
    return f"{verb} {counted(rows, 'object')} read, {size(each)} each, {size(each * rows)} in all."


def _with_read_state(label: str) -> type[Model]:
    found = model_with_label(label)
    if found is None or not has_read_state(found):
        known = ", ".join(one._meta.label for one in read_state_models())
        raise CommandError(f"{label!r} is no model with read state. This site has: {known or 'none'}.")
    return owner(found)


def erase(*, bar: Any, user: str, by: str, **options: Any) -> str:
    pk = _primary_key(user, by)
    with bar(desc="Erasing", unit=" keys") as shown:
        erased = tracker.erase(pk, progress=shown.update)
    members, bits = counted(erased.members, "member"), counted(erased.bits, "bit")
    remains = files(__package__).joinpath("help", "erased.txt").read_text(encoding="utf-8")
    return f"Erased {counted(erased.keys, 'key')}, {members} of sets and {bits} of bitmaps.\n{remains}"


def _primary_key(text: str, by: str) -> Any:
    model = get_user_model()
    try:
        return model._meta.pk.to_python(text) if by == "id" else model._default_manager.get_by_natural_key(text).pk
    except ValidationError as error:
        raise CommandError(f"{text!r} is not the id of a user.") from error
    except model.DoesNotExist as error:
        raise CommandError(f"There is no user {text!r}. To name one by id, deleted or not, add --by id.") from error


def daily_view(*, drop: bool, **options: Any) -> str:
    change = daily.drop if drop else daily.create
    change(databases.of(History))
    return f"{'Dropped' if drop else 'Created'} the view {daily.VIEW}."
