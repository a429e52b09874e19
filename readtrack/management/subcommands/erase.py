"""`manage.py readtrack erase USER`"""

from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from readtrack import tracker
from readtrack.doctor.findings import counted
from readtrack.store import lifecycle

description = """Erases what Redis holds of one user. That is what they have read, their place among the unique
visitors of each subject, their windows and rates. Counts stay, because they name nobody.

  manage.py readtrack erase alice
  manage.py readtrack erase 42 --by id        # works after the account was deleted, too

Looks at every key in Redis, which takes seconds per million keys."""
after_failure = "What was erased stays erased. Start again."

REMAINS = """These stay:
- totals, hours, trending, breakdowns and funnels, because they are sums
- unique visitors by HyperLogLog, in Redis and in SQL, because nobody can be taken out of a sketch. Whoever has the key
  of the hashes can ask a sketch about a user; with few visitors the answer is nearly certain
- visits made while signed out, because the hash of a cookie or address leads to no account
- hashes made with an earlier SECRET or SECRET_KEY, because nothing can compute them any more"""

arguments = {
    "user": {"metavar": "USER", "help": "id or user name"},
    "--by": {"choices": ("id", "name"), "help": "how to read USER, if it could be either"},
}


def run(
    command: BaseCommand, *, bar: Callable[..., Any], user: str, by: str | None, verbosity: int, **options: Any
) -> None:
    """Erases, and prints how much was erased and what stays."""
    pk = _primary_key(user, by)
    with bar(desc="Erasing", unit=" keys", total=lifecycle.effort()) as shown:
        erased = tracker.erase(pk, progress=shown.update)
    if not verbosity:
        return
    members, bits = counted(erased.members, "member"), counted(erased.bits, "bit")
    command.stdout.write(f"Erased {counted(erased.keys, 'key')}, {members} of sets and {bits} of bitmaps.\n{REMAINS}")


def _primary_key(text: str, by: str | None) -> Any:
    """Returns the user's primary key. Raises CommandError for no user, or for two that the text could name."""
    model = get_user_model()
    try:
        pk = model._meta.pk.to_python(text)
    except ValidationError:
        pk = None
    if by == "id" and pk is None:
        raise CommandError(f"{text!r} is not the id of a user.")
    if by == "id":
        return pk
    named = Q(**{model.USERNAME_FIELD: text})
    if by is None and pk is not None:
        named |= Q(pk=pk)
    found = list(model._default_manager.filter(named).values_list("pk", flat=True))
    if not found:
        raise CommandError(f"There is no user {text!r}. For a deleted account give its id, and --by id.")
    if len(found) > 1:
        raise CommandError(f"{text!r} is the id of one user and the name of another: add --by id or --by name.")
    return found[0]
