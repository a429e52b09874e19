"""The HTML that takes the place of each placeholder."""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import NamedTuple

from django.template.loader import render_to_string
from django.utils.html import escape, format_html
from django.utils.translation import ngettext, override

from readtrack import numerals
from readtrack.hits import reading
from readtrack.page.placeholders import (
    DOT,
    EXACT,
    KEY,
    OF_COUNTS,
    OF_ELEMENTS,
    PAGE,
    TEXT,
    UNREAD,
    WITH_NONCE,
    WORDS,
    Placeholder,
)
from readtrack.page.shown import ANSWER, END_OF_TOKEN, VERSIONS, token_of
from readtrack.reports.page_state import PageState
from readtrack.store.read_state import strategy_of

START_OF_ELEMENT = re.compile(r"\A<[\w-]+")


class ScriptTag(NamedTuple):
    """What the tag of a page's script says of the request that gets the page."""

    nonce: Callable[[], str] = str  # of its content security policy, "" without one
    is_counted: bool = False  # the server has counted the page's views


NO_SCRIPT_TAG = ScriptTag()


def rendered(
    placeholders: Mapping[bytes, Placeholder], state: PageState, *, tag: ScriptTag = NO_SCRIPT_TAG
) -> dict[bytes, str]:
    """Returns the HTML of each placeholder by its text; "" for the marks of `if_unread`."""
    has_page = any(placeholder.kind == PAGE for placeholder in placeholders.values())
    html: dict[bytes, str] = {}
    for language in {placeholder.language for placeholder in placeholders.values()}:
        with in_language(language):
            dots = cache(new_items)  # a template is rendered once a page
            for text, placeholder in placeholders.items():
                if placeholder.language != language:
                    continue
                element = _element(placeholder, state, dots=dots)
                if has_page and placeholder.kind in OF_ELEMENTS:
                    element = _with_key(element, key=text[KEY].decode())
                html[text] = element
    if has_page:
        html.update(_page(placeholders, tag))
    return html


def in_language(language: str) -> AbstractContextManager[None]:
    """Returns the context of that language, "" for the one that is active."""
    return override(language) if language else nullcontext()


def _element(placeholder: Placeholder, state: PageState, *, dots: Callable[[int], str]) -> str:
    if placeholder.kind in OF_COUNTS:
        return _count(state.views[placeholder.subject], kind=placeholder.kind)
    if placeholder.kind in {DOT, UNREAD}:
        items = state.unread.get(placeholder.subject, 0)
        return _dot(items, placeholder, dots=dots)
    if placeholder.kind == TEXT:
        return _seconds(placeholder)
    return ""


def _count(views: int, *, kind: str) -> str:
    if views < 1000:  # needs no formatting, which takes longer than all else here
        exact = str(views)
        shown = exact
    else:
        exact = numerals.exact(views)
        shown = numerals.short(views)
    if kind == EXACT:
        return exact
    if kind == WORDS:
        shown = in_words(views)
    return format_html('<span class="readtrack-count" title="{}">{}</span>', exact, shown)


def _dot(items: int, placeholder: Placeholder, *, dots: Callable[[int], str]) -> str:
    if not items:
        return ""
    has_number = placeholder.kind == UNREAD and strategy_of(placeholder.subject).has_numbers
    return dots(items if has_number else 0)


def _seconds(placeholder: Placeholder) -> str:
    """Returns the least number of seconds that reading the text takes."""
    return str(reading.least_seconds(placeholder.stored or 0))


def _with_key(html: str, *, key: str) -> str:
    """Returns the element with the attribute by which the page's script finds it."""
    attribute = f' data-rt="{key}"'
    if not html:
        return f"<span{attribute} hidden></span>"
    named, is_element = START_OF_ELEMENT.subn(rf"\g<0>{attribute}", html)
    return named if is_element else f"<span{attribute}>{html}</span>"


def _page(placeholders: Mapping[bytes, Placeholder], tag: ScriptTag) -> dict[bytes, str]:
    """Returns what the page's script gets: its version, the nonce and the page's token, and of the
    token the end in the mark of the first text.
    """
    pages = {text: page for text, page in placeholders.items() if page.kind == PAGE}
    texts = {text: mark for text, mark in placeholders.items() if mark.kind == TEXT}
    page_text, page = next(iter(pages.items()))
    if page.subject == ANSWER:
        return {}
    elements = [entry for entry in placeholders.values() if entry.kind in OF_ELEMENTS]
    nonce = tag.nonce() if page.stored == WITH_NONCE else ""
    # The HTML goes on from one attribute to the next.
    start = f'" nonce="{escape(nonce)}" data-page="' if nonce else '" data-page="'
    if not texts:
        token = token_of(page.subject, elements, is_counted=tag.is_counted)
        return {page_text: f"{VERSIONS[0]}{start}{token}"}
    mark_text, mark = next(iter(texts.items()))
    text = (mark.subject, mark.stored)
    token = token_of(page.subject, elements, text, is_counted=tag.is_counted)
    return {
        page_text: f"{VERSIONS[1]}{start}{token}",
        # A visitor may type a mark, but cannot know the end of the token.
        mark_text: f'{_seconds(mark)}" data-of="{token[END_OF_TOKEN]}',
    }


def in_words(views: int) -> str:
    """Returns a count as text: `1 view`, `1.2k views`."""
    return ngettext("%(views)s view", "%(views)s views", views) % {"views": numerals.short(views)}


def new_items(items: int) -> str:
    """Returns the number of new items as HTML; without a number (0) it is a dot."""
    if not items:
        return render_to_string("readtrack/dot.html").strip()
    numbers = {"items": items, "exact": numerals.exact(items), "short": numerals.short(items)}
    return render_to_string("readtrack/unread_count.html", numbers).strip()
