"""`manage.py readtrack erase`."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from readtrack import tracker
from readtrack.doctor.wording import counted
from readtrack.management.subcommands import confirmation
from readtrack.management.subcommands.base import Subcommand, progress_bar
from readtrack.store.erasure import Erased

REMAINS = """\
These stay:
- totals, hours, trending, breakdowns and funnels, because they are sums
- unique visitors by HyperLogLog, in Redis and in SQL, because nobody can be taken out of a sketch.
  Whoever has the key of the hashes can ask a sketch about a user; with few visitors the answer is
  nearly certain
- visits made while signed out, because the hash of a cookie or address leads to no account
- hashes made with an earlier SECRET or SECRET_KEY, because nothing can compute them any more
"""


class Erase(Subcommand):
    """Erases what Redis and SQL hold of a user."""

    name = "erase"
    help = """\
Erases what Redis holds of one user, and SQL's copies of that. That is what they have read, their
place among the unique visitors of each subject, their windows and rates. Counts stay, because they
name nobody.

  manage.py readtrack erase alice
  manage.py readtrack erase 42 --by id    # works after the account was deleted, too

On a terminal it says what will be erased, and asks; --no-input does not ask, --dry-run only says
it.

Looks at every key in Redis, which takes seconds per million keys, and twice as long when it asks.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="user name, or id with --by id")
        parser.add_argument(
            "--by",
            choices=["id", "name"],
            default="name",
            help="how to read USER (default: %(default)s)",
        )
        confirmation.add_arguments(parser)

    def handle(
        self,
        *,
        user: str,
        by: str,
        dry_run: bool,
        interactive: bool,
        verbosity: int,
        **options: Any,
    ) -> str:
        primary_key = _primary_key(user, by=by)

        def consequences() -> str:
            with progress_bar("Looking", unit=" keys", verbosity=verbosity) as bar:
                to_erase = tracker.erase(primary_key, is_dry_run=True, progress=bar.update)
            return f"This erases for good what is stored of the user {user}: {_amount(to_erase)}."

        if dry_run:
            return consequences()
        confirmation.confirm(consequences, interactive=interactive)
        with progress_bar("Erasing", unit=" keys", verbosity=verbosity) as bar:
            erased = tracker.erase(primary_key, progress=bar.update)
        return f"Erased {_amount(erased)}.\n{REMAINS}"


def _amount(erased: Erased) -> str:
    """Returns how much of a user's data is erased, in words."""
    keys = counted(erased.keys, "key")
    members = counted(erased.members, "member")
    bits = counted(erased.bits, "bit")
    rows = counted(erased.copies, "row")
    records = counted(erased.of_parts, "record")
    return f"{keys}, {members} of sets, {bits} of bitmaps, {rows} in SQL and {records} of parts"


def _primary_key(user: str, *, by: str) -> Any:
    """Returns the primary key of the user that USER names by "id" or by "name"."""
    if by == "id":
        return _id(user)
    return _id_of_name(user)


def _id(text: str) -> Any:
    """Returns the id of a user, who may be deleted. Raises CommandError for other texts."""
    try:
        return get_user_model()._meta.pk.to_python(text)
    except ValidationError as error:
        raise CommandError(f"{text!r} is not the id of a user.") from error


def _id_of_name(name: str) -> Any:
    """Returns the id of the user called `name`. Raises CommandError if there is none."""
    model = get_user_model()
    try:
        return model._default_manager.get_by_natural_key(name).pk
    except model.DoesNotExist as error:
        raise CommandError(
            f"There is no user {name!r}. To name one by id, deleted or not, add --by id."
        ) from error
