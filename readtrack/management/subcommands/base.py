"""What each word of `manage.py readtrack` has, and what all of them share."""

from typing import Any

from django.core.management.base import CommandParser


class Subcommand:
    """One word behind `manage.py readtrack`: its help, its arguments and what it does."""

    name = ""
    # What --help prints, line by line; its first sentence is in the list of all subcommands.
    help = ""
    # False for a subcommand that can work, or says so itself, without a usable cache.
    needs_redis = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Adds the arguments to the parser of the subcommand. There are none by default."""

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Does the work, and returns what to print.

        `options` are those of the command line, and `command`, which has the output and its style.
        """
        raise NotImplementedError


def progress_bar(description: str, *, verbosity: int, **options: Any) -> Any:
    """Returns a progress bar of tqdm, with its `options`, to use as a context manager.

    It is hidden for the first second, with verbosity 0, and where the output is no terminal.
    """
    from tqdm import tqdm  # only commands that take long need it

    is_disabled = True if verbosity == 0 else None  # None leaves it to the output
    return tqdm(desc=description, delay=1, leave=False, disable=is_disabled, **options)
