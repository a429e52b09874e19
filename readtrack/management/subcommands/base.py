"""The base of the subcommands of `manage.py readtrack`, and their progress bar."""

from typing import Any, NamedTuple

from django.core.management.base import CommandError, CommandParser

from readtrack import shipped


class Subcommand:
    """One subcommand: its name, its help, its arguments and its work."""

    name = ""
    # The text of --help, line by line. Its first sentence is in the list of all subcommands.
    help = ""
    # False for a subcommand that works without a usable cache, or reports that by itself. It also
    # works with the keys and tables of a newer version.
    needs_redis = True
    # False for a subcommand that needs Redis, and whose flushes refuse keys and tables of a newer
    # version.
    needs_known_layout = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the arguments to the parser of the subcommand. There are none by default."""

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Does the work, and returns what to print.

        `options` are those of the command line, and `command`, which has the output and its style.
        """
        raise NotImplementedError


class Line(NamedTuple):
    """A number that `readtrack show` prints: what it is, and where it comes from."""

    name: str
    number: str
    source: str


class Missing(Subcommand):
    """The subcommand of a part that is not installed, which only says so."""

    needs_redis = False

    def __init__(self, name: str, part: str) -> None:
        self.name = name
        self.help = shipped.missing(name, part)

    def handle(self, *args: Any, **options: Any) -> str | None:
        raise CommandError(self.help)


def progress_bar(description: str, *, verbosity: int, **options: Any) -> Any:
    """Returns a progress bar of tqdm, a context manager. `options` are those of tqdm.

    It is hidden for the first second, with verbosity 0, and if the output is no terminal.
    """
    from tqdm import tqdm  # only commands that take long need it

    disable = None  # it is disabled if the output is no terminal
    if verbosity == 0:
        disable = True
    return tqdm(desc=description, delay=1, leave=False, disable=disable, **options)
