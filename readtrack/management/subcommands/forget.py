"""`manage.py readtrack forget USER`"""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext, gettext_lazy

from readtrack import tracker
from readtrack.management.errors import redis_failed
from readtrack.management.progress import bar
from readtrack.numerals import exact
from readtrack.store import erasure
from readtrack.store.connection import RedisError

help = "erase what Redis holds of one user"  # noqa: A001
description = """Erases what Redis holds of one user: what they have read, their place among a page's unique
visitors, their windows and rates. It looks at every key, so it takes seconds per million.

Works for an account that is deleted already, by its id. Counts stay: nobody is named in them."""

REMAINS = gettext_lazy("""By design these cannot be traced back to anybody, and stay:
- totals, hours, trending, breakdowns and funnels: sums
- unique visitors as HyperLogLog: a sketch that nobody can be taken out of
- visits made while signed out, by cookie or address: their hashes lead to no account
- hashes made with an earlier SECRET or SECRET_KEY, which nothing can compute any more""")


def add_arguments(parser: CommandParser) -> None:
    """The user, by id or name."""
    parser.add_argument("user", metavar="USER", help="id or user name")
    parser.add_argument("--by", choices=("id", "name"), help="what USER is, where it could be either")


def run(command: BaseCommand, *, user: str, by: str | None, verbosity: int, **options: Any) -> None:
    """Erases, and says what went and what stays."""
    pk = _primary_key(user, by)
    try:
        with bar(gettext("Erasing"), gettext(" keys"), total=erasure.effort(), verbosity=verbosity) as shown:
            erased = tracker.erase(pk, progress=shown.update)
    except RedisError as error:
        raise redis_failed(error, gettext("Is it running? What was erased stays so; start anew.")) from error
    if not verbosity:
        return
    figures = {gettext("keys"): erased.keys, gettext("members"): erased.members, gettext("bits"): erased.bits}
    for name, count in figures.items():
        command.stdout.write(f"{name:8} {exact(count):>12}")
    command.stdout.write(str(REMAINS))


def _primary_key(text: str, by: str | None) -> Any:
    """The user's. Raises CommandError where it is not clear who is meant."""
    model = get_user_model()
    pk = _as_id(text)
    if by == "id":
        if pk is None:
            raise CommandError(gettext("%(user)s is no id of a user.") % {"user": repr(text)})
        return pk
    rows = model._default_manager
    found = set(rows.filter(**{model.USERNAME_FIELD: text}).values_list("pk", flat=True))
    if by is None and pk is not None:
        found |= set(rows.filter(pk=pk).values_list("pk", flat=True))
    if not found:
        message = gettext("There is no user %(user)s. For an account that is deleted already give its id, and --by id.")
        raise CommandError(message % {"user": repr(text)})
    if len(found) > 1:
        message = gettext("%(user)s is the id of one user and the name of another: say --by id or --by name.")
        raise CommandError(message % {"user": repr(text)})
    return found.pop()


def _as_id(text: str) -> Any | None:
    try:
        return get_user_model()._meta.pk.to_python(text)
    except ValidationError:
        return None
