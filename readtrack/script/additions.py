"""Additions: what parts add to the script of those pages whose tag asks for it."""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from readtrack import parts
from readtrack.conf import cached_setting
from readtrack.page.placeholders import Placeholder
from readtrack.reports.page_state import PageState

if TYPE_CHECKING:
    from readtrack.script.shown import TokenPage

COMMENT = re.compile(rb"^ *//.*\n", re.MULTILINE)


class Addition:
    """What one part adds."""

    # The field of the answer to the script that has what `told` returns. Short letters, because a
    # placeholder carries it.
    name: ClassVar[str]
    # As which the placeholder and the token of a page keep that it has the addition: a power of 2,
    # at least 2, and another one for each addition.
    option: ClassVar[int]

    def source(self) -> bytes:
        """Returns JavaScript that follows the page's script."""
        raise NotImplementedError

    def attributes(self, elements: Sequence[Placeholder]) -> Mapping[str, str]:
        """Returns attributes of the script's tag that depend on the page's counts and dots."""
        return {}

    def answer(self, page: "TokenPage") -> Mapping[str, Any]:
        """Returns further fields of the answer to the script of the page."""
        return {}

    def told(self, placeholders: Sequence[Placeholder], state: PageState) -> str:
        """Returns what the answer tells the script of the state of its placeholders.

        `state` has the times of the last publications.
        """
        return ""


@runtime_checkable
class Adding(Protocol):
    """The configuration of a part that adds something to the script."""

    def script_addition(self) -> Addition:
        """Returns what it adds to the script of those pages whose tag asks for it."""


def source_of(package: str, name: str) -> bytes:
    """Returns a file of JavaScript without the lines that are comments."""
    return COMMENT.sub(b"", files(package).joinpath(name).read_bytes())


@cached_setting("INSTALLED_APPS", maxsize=1)
def all_additions() -> tuple[Addition, ...]:
    """Returns the additions of all installed parts, in the order of their options."""
    adding = [part for part in parts.installed() if isinstance(part, Adding)]
    found = [part.script_addition() for part in adding]
    return tuple(sorted(found, key=lambda addition: addition.option))


def among(options: int) -> list[Addition]:
    """Returns the additions whose options are in the sum."""
    if not options:
        return []
    return [addition for addition in all_additions() if options & addition.option]


def named(name: str) -> Addition | None:
    """Returns the addition called `name`; None if its part is not installed any more."""
    return next((addition for addition in all_additions() if addition.name == name), None)
