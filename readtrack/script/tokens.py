"""The content of tokens: of pages, of names of live dots, and of links of `outbound_url`.

The number of its layout is signed with it. See `readtrack.layouts`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from readtrack import __version__, layouts
from readtrack.conf import cached_setting, logger


def signed_content(fields: Iterable[Any]) -> list[Any]:
    """Returns the fields of a token behind the number of their layout, to be signed."""
    return [layouts.SIGNED, *fields]


def fields_in(content: Any, *, what: str) -> Sequence[Any]:
    """Returns the fields of a token whose signature is verified.

    Raises ValueError if they have another layout, and TypeError or ValueError for anything else
    than such a token. `what` names the kind of token in the log.
    """
    fields: list[Any]
    layout, *fields = content
    if layout != layouts.SIGNED:
        _warn_of_layout(what, str(layout)[:20])
        raise ValueError(f"{what} of layout {layout}")
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
        layouts.SIGNED,
    )
