"""The HTML that takes the place of each placeholder."""

import json
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
from readtrack.page import additions, elements
from readtrack.page.placeholders import (
    DOT,
    EXACT,
    KEY,
    OF_COUNTS,
    OF_ELEMENTS,
    PAGE,
    TEXT,
    TOLD,
    UNREAD,
    WITH_NONCE,
    WORDS,
    Placeholder,
)
from readtrack.page.shown import ANSWER, END_OF_TOKEN, MOST_ELEMENTS, token_of, version
from readtrack.reports.page_state import PageState
from readtrack.store.read_state import strategy_of

START_OF_ELEMENT = re.compile(r"\A<[\w-]+")  # up to the name of the tag


class ScriptTag(NamedTuple):
    """What the tag of a page's script says about the request that gets the page."""

    nonce: Callable[[], str] = str  # of its content security policy, "" without one
    is_counted: bool = False  # the server has counted the page's views


NO_SCRIPT_TAG = ScriptTag()


def rendered(
    placeholders: Mapping[bytes, Placeholder],
    state: PageState,
    *,
    script_tag: ScriptTag = NO_SCRIPT_TAG,
) -> dict[bytes, str]:
    """Returns the HTML of each placeholder by its text; "" for the tags of `if_unread`.

    In the answer to a page's script it is the element as JSON, see `elements`.
    """
    page = placeholders.get(_first(placeholders, PAGE))  # None for a page without the script
    html_by_text: dict[bytes, str] = {}
    for language in {placeholder.language for placeholder in placeholders.values()}:
        with in_language(language):
            render_items = cache(new_items)  # because many dots of a page are the same
            for text, placeholder in placeholders.items():
                if placeholder.language != language:
                    continue
                html = _element(placeholder, state, render_items=render_items)
                if page is not None and placeholder.kind in OF_ELEMENTS:
                    html = _for_script(html, key=text[KEY].decode(), page=page)
                html_by_text[text] = html
    if page is not None:
        html_by_text.update(_page(placeholders, state, script_tag))
    return html_by_text


def in_language(language: str) -> AbstractContextManager[None]:
    """Returns the context in which texts have that language, "" for the one that is active."""
    return override(language) if language else nullcontext()


def _element(
    placeholder: Placeholder, state: PageState, *, render_items: Callable[[int, int | None], str]
) -> str:
    """Returns the HTML of a placeholder, "" for that of a page and for the tags of `if_unread`."""
    if placeholder.kind in OF_COUNTS:
        return _count(state.views[placeholder.subject], placeholder)
    if placeholder.kind in {DOT, UNREAD}:
        items = state.unread.get(placeholder.subject, 0)
        return _dot(items, placeholder, render_items=render_items)
    if placeholder.kind == TEXT:
        return _seconds(placeholder)
    return ""


def _count(views: int, placeholder: Placeholder) -> str:
    """Returns the HTML of a count, or of EXACT the mere number."""
    if views < 1000:  # without the formatting of numbers, which takes longest here
        exact = str(views)
        shown_text = exact
    else:
        exact = numerals.exact(views)
        shown_text = numerals.short(views)
    if placeholder.kind == EXACT:
        return exact
    if placeholder.kind == WORDS:
        shown_text = in_words(views)
    return format_html('<span class="readtrack-count" title="{}">{}</span>', exact, shown_text)


def _dot(
    items: int, placeholder: Placeholder, *, render_items: Callable[[int, int | None], str]
) -> str:
    """Returns the HTML of a number of new items, or of a dot; "" without new items."""
    if not items:
        return ""
    form = strategy_of(placeholder.subject)
    if placeholder.kind == UNREAD and form.has_numbers:
        return render_items(items, form.most_counted)
    return render_items(0, None)


def _seconds(placeholder: Placeholder) -> str:
    """Returns the least number of seconds that reading the text takes."""
    return str(reading.least_seconds(placeholder.stored or 0))


def _for_script(html: str, *, key: str, page: Placeholder) -> str:
    """Returns the element with its key for the page's script: as HTML in a page, as JSON in an
    answer.
    """
    html = _with_key(html, key=key)
    if page.subject != ANSWER:
        return html
    return json.dumps(elements.element_of(html))


def _with_key(html: str, *, key: str) -> str:
    """Returns the element with the attribute by which the page's script finds it.

    Text that is no element gets an element around it; for no text it is a hidden element.
    """
    attribute = f' data-rt="{key}"'
    if not html:
        return f"<span{attribute} hidden></span>"
    named, is_element = START_OF_ELEMENT.subn(rf"\g<0>{attribute}", html)
    return named if is_element else f"<span{attribute}>{html}</span>"


def _page(
    placeholders: Mapping[bytes, Placeholder], state: PageState, script_tag: ScriptTag
) -> dict[bytes, str]:
    """Returns what the tag of the page's script says, or what additions tell in the answer to a
    script.

    An answer has neither version nor token, because the script has these already.
    """
    text_of_page = _first(placeholders, PAGE)
    if placeholders[text_of_page].subject != ANSWER:
        return _script(placeholders, text_of_page, script_tag=script_tag)
    told = {}
    for text, placeholder in placeholders.items():
        if placeholder.kind == TOLD:
            addition = additions.named(placeholder.subject)
            told[text] = addition.told([*placeholders.values()], state) if addition else ""
    return told


def _script(
    placeholders: Mapping[bytes, Placeholder], text_of_page: bytes, *, script_tag: ScriptTag
) -> dict[bytes, str]:
    """Returns the HTML of the page's placeholder, and of the mark of the page's text if it has one.

    It is the version of the script, the nonce, the attributes of additions and the page's token.
    The mark has the end of the token.
    """
    page = placeholders[text_of_page]
    elements = [entry for entry in placeholders.values() if entry.kind in OF_ELEMENTS]
    options = (page.stored or 0) & ~WITH_NONCE
    # A placeholder stands within an attribute. What takes its place ends that attribute and begins
    # others, the last of which the quote behind the placeholder ends.
    attributes = _nonce(page, script_tag)
    for addition in additions.among(options):
        for name, value in addition.attributes(elements[:MOST_ELEMENTS]).items():
            attributes += f'" {name}="{escape(value)}'
    attributes += '" data-page="'
    text_of_mark = _first(placeholders, TEXT)
    mark = placeholders.get(text_of_mark)
    token = token_of(
        page.subject,
        elements,
        () if mark is None else (mark.subject, mark.stored),
        is_counted=script_tag.is_counted,
        options=options,
    )
    version_of_script = version(has_text=mark is not None, options=options)
    html = {text_of_page: f"{version_of_script}{attributes}{token}"}
    if mark is not None:
        # A visitor may type such an element, but cannot know the end of the token.
        html[text_of_mark] = f'{_seconds(mark)}" data-of="{token[END_OF_TOKEN]}'
    return html


def _first(placeholders: Mapping[bytes, Placeholder], kind: str) -> bytes:
    """Returns the text of the first placeholder of the kind; b"" if there is none."""
    texts = (text for text, placeholder in placeholders.items() if placeholder.kind == kind)
    return next(texts, b"")


def _nonce(page: Placeholder, script_tag: ScriptTag) -> str:
    """Returns the beginning of the attribute with the page's nonce, "" for a page without one."""
    has_nonce = (page.stored or 0) & WITH_NONCE
    nonce = script_tag.nonce() if has_nonce else ""
    return f'" nonce="{escape(nonce)}' if nonce else ""


def in_words(views: int) -> str:
    """Returns a count as text: `1 view`, `1.2k views`."""
    return ngettext("%(views)s view", "%(views)s views", views) % {"views": numerals.short(views)}


def new_items(items: int, most_counted: int | None = None) -> str:
    """Returns the number of new items as HTML; for 0 a dot, because the number is not known.

    A number above `most_counted` is shown as `99+`.
    """
    if not items:
        return render_to_string("readtrack/dot.html").strip()
    exact = numerals.exact(items)
    short = numerals.short(items)
    if most_counted is not None and items > most_counted:
        exact = f"{numerals.exact(most_counted)}+"
        short = exact
    numbers = {"items": items, "exact": exact, "short": short}
    return render_to_string("readtrack/unread_count.html", numbers).strip()
