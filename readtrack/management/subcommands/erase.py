"""`manage.py readtrack erase USER`"""

from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from readtrack import tracker
from readtrack.doctor.findings import counted
from readtrack.store import lifecycle

after_failure = "What was erased stays erased. Start again."

REMAINS = """These stay:
- totals, hours, trending, breakdowns and funnels, because they are sums
- unique visitors by HyperLogLog, in Redis and in SQL, because nobody can be taken out of a sketch. Whoever has the key
  of the hashes can ask a sketch about a user; with few visitors the answer is nearly certain
- visits made while signed out, because the hash of a cookie or address leads to no account
- hashes made with an earlier SECRET or SECRET_KEY, because nothing can compute them any more"""

arguments = {
    "user": {"metavar": "USER", "help": "user name, or id with --by id"},
    "--by": {"choices": ("id", "name"), "default": "name", "help": "how to read USER (default: %(default)s)"},
}


def run(command: BaseCommand, *, bar: Callable[..., Any], user: str, by: str, verbosity: int, **options: Any) -> None:
    """Erases, and prints how much was erased and what stays."""
    pk = _primary_key(user, by)
    with bar(desc="Erasing", unit=" keys", total=lifecycle.effort()) as shown:
        erased = tracker.erase(pk, progress=shown.update)
    if not verbosity:
        return
    members, bits = counted(erased.members, "member"), counted(erased.bits, "bit")
    command.stdout.write(f"Erased {counted(erased.keys, 'key')}, {members} of sets and {bits} of bitmaps.\n{REMAINS}")


def _primary_key(text: str, by: str) -> Any:
    model = get_user_model()
    try:
        return model._meta.pk.to_python(text) if by == "id" else model._default_manager.get_by_natural_key(text).pk
    except ValidationError as error:
        raise CommandError(f"{text!r} is not the id of a user.") from error
    except model.DoesNotExist as error:
        raise CommandError(f"There is no user {text!r}. To name one by id, deleted or not, add --by id.") from error
