"""Live dots: those of a page that its script keeps up to date, without a reload.

The script asks when these dots were last published to. The answer is the same for everybody, so a
cache may give it to all readers. Only if a time is newer than the page, the script asks for the
reader's own dots.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from django.core.signing import BadSignature, Signer

from readtrack.page.placeholders import DOT, UNREAD, Placeholder
from readtrack.script import tokens
from readtrack.script.rendering import element_keys
from readtrack.store import keys
from readtrack.store.read_state import form_of

KINDS = {DOT, UNREAD}  # of the placeholders whose elements are live dots
# Characters of a name. It is part of an address, for which servers have 8,000 bytes or more.
LONGEST_NAME = 6_000

News = dict[str, dict[str, int]]


class LiveDot(NamedTuple):
    """The element of a dot, or of a number of new items."""

    subject: str
    has_number: bool  # so that it changes with each publication, not only with the first one
    element_keys: Sequence[str]  # by which the script finds it


class LiveDots(NamedTuple):
    """The live dots of a page."""

    prefix: str  # of the keys in Redis
    dots: Sequence[LiveDot]

    @property
    def subjects(self) -> list[str]:
        """Returns the subjects of the dots, each of them once."""
        return list(dict.fromkeys(dot.subject for dot in self.dots))

    def news(self, published: Mapping[str, int]) -> News:
        """Returns the times of the last publications (µs) by element, those of numbers apart.

        `published` has the times by subject. Elements without a time are left out.
        """
        news: News = {"dots": {}, "numbers": {}}
        for dot in self.dots:
            time = published.get(dot.subject)
            if time is not None:
                group = news["numbers" if dot.has_number else "dots"]
                group.update(dict.fromkeys(dot.element_keys, time))
        return news


def dots_of(placeholders: Iterable[Placeholder]) -> LiveDots:
    """Returns the live dots among the placeholders of a page, in an order of their own."""
    dots = []
    for placeholder in placeholders:
        if placeholder.kind not in KINDS:
            continue
        subject = placeholder.subject
        has_number = placeholder.kind == UNREAD and form_of(subject).has_numbers
        dots.append(LiveDot(subject, has_number, element_keys(placeholder)))
    return LiveDots(keys.prefix(), sorted(dots))


def name_of(live_dots: LiveDots) -> str:
    """Returns the signed name of a page's live dots; "" for none.

    It is the same for all pages with these dots. Where it would be too long, it leaves out dots.
    """
    dots = live_dots.dots
    while dots:
        content = tokens.signed_content([live_dots.prefix, dots])
        name: str = _signer().sign_object(content, compress=True)
        if len(name) <= LONGEST_NAME:
            return name
        dots = dots[: len(dots) // 2]
    return ""


def parse(query: str) -> LiveDots | None:
    """Returns the live dots whose name is the query of an address; None for a name that is not
    ours.
    """
    if len(query) > LONGEST_NAME:
        return None
    try:
        content = _signer().unsign_object(unquote(query))
        prefix, dots = tokens.fields_in(content, what="A name of live dots")
        return LiveDots(prefix, [LiveDot(*fields) for fields in dots])
    except (BadSignature, TypeError, ValueError):
        return None


def _signer() -> Any:
    # Not by the salt of a tenant: the server of events knows the tenant only by this name.
    return Signer(salt="readtrack.live")
