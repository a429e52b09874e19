"""`manage.py readtrack forget USER`"""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from readtrack import tracker
from readtrack.store import traces
from readtrack.store.connection import RedisError

SECONDS_BEFORE_BAR = 1  # a progress bar is for work that lasts

help = "erase what Redis holds of one user"  # noqa: A001
description = """Erases what Redis holds of one user: what they have read, their place among a page's unique
visitors, their windows and rates. It looks at every key, so it takes seconds per million.

Works for an account that is deleted already, by its id. Counts stay: nobody is named in them."""

REMAINS = """By design these cannot be traced back to anybody, and stay:
- totals, hours, trending, breakdowns and funnels: sums
- unique visitors as HyperLogLog: a sketch that nobody can be taken out of
- visits made while signed out, by cookie or address: their hashes lead to no account
- hashes made with an earlier SECRET or SECRET_KEY, which nothing can compute any more"""


def add_arguments(parser: CommandParser) -> None:
    """The user, by id or name."""
    parser.add_argument("user", metavar="USER", help="id or user name")
    parser.add_argument("--by", choices=("id", "name"), help="what USER is, where it could be either")


def run(command: BaseCommand, *, user: str, by: str | None, verbosity: int, **options: Any) -> None:
    """Erases, and says what went and what stays."""
    pk = _primary_key(user, by)
    hidden = None if verbosity else True  # None: hidden where the output is no terminal
    try:
        total = traces.effort()
        with tqdm(
            desc="Erasing", unit=" keys", total=total, delay=SECONDS_BEFORE_BAR, disable=hidden, leave=False
        ) as bar:
            erased = tracker.forget(pk, progress=bar.update)
    except RedisError as error:
        raise CommandError(f"Redis failed: {error}\nIs it running? What was erased stays so; start anew.") from error
    if not verbosity:
        return
    command.stdout.write(f"keys     {erased.keys:>12,}\nmembers  {erased.members:>12,}\nbits     {erased.bits:>12,}")
    command.stdout.write(REMAINS)


def _primary_key(text: str, by: str | None) -> Any:
    """The user's. Raises CommandError where it is not clear who is meant."""
    model = get_user_model()
    pk = _as_id(text)
    if by == "id":
        if pk is None:
            raise CommandError(f"{text!r} is no id of a user.")
        return pk
    rows = model._default_manager
    found = set(rows.filter(**{model.USERNAME_FIELD: text}).values_list("pk", flat=True))
    if by is None and pk is not None:
        found |= set(rows.filter(pk=pk).values_list("pk", flat=True))
    if not found:
        raise CommandError(
            f"There is no user {text!r}. For an account that is deleted already give its id, and --by id."
        )
    if len(found) > 1:
        raise CommandError(f"{text!r} is the id of one user and the name of another: say --by id or --by name.")
    return found.pop()


def _as_id(text: str) -> Any | None:
    try:
        return get_user_model()._meta.pk.to_python(text)
    except ValidationError:
        return None
