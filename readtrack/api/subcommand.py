"""`manage.py readtrack mcp`."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from readtrack.management.subcommands.base import Subcommand


class Mcp(Subcommand):
    """Answers the questions of an assistant."""

    name = "mcp"
    help = """\
Answers an assistant's questions about the numbers, by the Model Context Protocol over stdio.

  manage.py readtrack mcp --user anna

The assistant starts the command, and sees what this user may see at the moment of each question. It can change
nothing. Needs the package mcp: pip install "readtrack[mcp]".
"""
    needs_redis = False  # without Redis the answers are SQL's numbers, and say so

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--user", required=True, metavar="NAME", help="whose permissions the assistant has"
        )

    def handle(self, *, user: str, **options: Any) -> None:
        try:
            # Imported here, because only this subcommand needs the package.
            from readtrack.api.assistants import serve
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "anyio"):
                raise
            raise CommandError(
                'The package mcp is not installed: pip install "readtrack[mcp]"'
            ) from error
        serve(_user_named(user))


def _user_named(name: str) -> Any:
    """Returns the active user called `name`. Raises CommandError if there is none."""
    model = get_user_model()
    user = None
    if "\0" not in name:
        rows = model._default_manager.filter(**{model.USERNAME_FIELD: name})
        user = rows.first()
    if user is None:
        raise CommandError(f"There is no user {name!r}.")
    if not user.is_active:
        raise CommandError(f"The user {name!r} is not active.")
    return user
