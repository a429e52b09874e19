"""The layouts of what readtrack stores and signs, by which two of its versions know whether they
understand each other.

A layout gets the next number only if an older version cannot work with it. What is merely added (a
key, a table, a column that may be empty, a kind of placeholder) needs no number.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from readtrack import __version__
from readtrack.conf import cached_setting, logger

# Keys in Redis and tables in SQL have one number together. A version knows a layout one minor
# version before another one writes it, so that neighbours can run side by side.
WRITTEN = 1  # what this version writes
KNOWN = 1  # the newest one that this version understands

# Tokens of pages, names of live dots, and links of `outbound_url`. The number is signed with them.
SIGNED = 1

# What cookies and placeholders are signed for. The number is their layout: a signature for another
# one is none for this version.
COOKIE = "cookie1"
PLACEHOLDER = "placeholder1"

HINT = (
    "Upgrade readtrack here. Nothing is lost meanwhile: pages go on counting in Redis, and the"
    " flushes of the newer version store that."
)


class UnknownLayoutError(ValueError):
    """Something is signed by this site, and its layout is that of another version of readtrack."""


def sentence(place: str, layout: int) -> str:
    """Returns the sentence about a layout that this version does not know.

    `place` is what has it, such as "Redis has keys".
    """
    return (
        f"{place} of layout {layout}, which a newer version of readtrack wrote. This is readtrack"
        f" {__version__}, which knows layouts up to {KNOWN}, so it changes nothing."
    )


def signed_content(fields: Iterable[Any]) -> list[Any]:
    """Returns the fields of a token behind the number of their layout, to be signed."""
    return [SIGNED, *fields]


def fields_in(content: Any, *, what: str) -> Sequence[Any]:
    """Returns the fields of a token whose signature is verified.

    Raises UnknownLayoutError if they have another layout, and TypeError or ValueError for anything
    else than such a token. `what` names the kind of token in the log.
    """
    fields: list[Any]
    layout, *fields = content
    if layout != SIGNED:
        _warn_of_layout(what, str(layout)[:20])
        raise UnknownLayoutError(f"{what} of layout {layout}")
    return fields


@cached_setting()  # once in a process
def _warn_of_layout(what: str, layout: str) -> None:
    """Logs that a token of another layout is refused. `what` names the kind of token."""
    logger.warning(
        "%s of layout %s is refused: another version of readtrack made it, and readtrack %s knows"
        " layout %s. While versions are replaced one by one, none may be left out.",
        what,
        layout,
        __version__,
        SIGNED,
    )
