"""The HTML of a page with the script: its tag, and elements that the script finds again."""

import json
import re
from collections.abc import Mapping
from typing import Any

from django.utils.html import escape

from readtrack import layouts
from readtrack.hits.visitors import digest, earlier_digests
from readtrack.page.placeholders import (
    COUNT,
    DOT,
    PAGE,
    TEXT,
    TOLD,
    UNREAD,
    WORDS,
    Placeholder,
)
from readtrack.page.rendering import Delivery
from readtrack.reports.page_state import PageState
from readtrack.script import additions, elements, reading
from readtrack.script.shown import ANSWER, END_OF_TOKEN, MOST_ELEMENTS, token_of, version
from readtrack.store import keys

OF_ELEMENTS = {COUNT, WORDS, DOT, UNREAD}  # kinds of placeholders that the answer replaces
# Where the first half of the signature is in a placeholder's text. By it the page's script finds
# the element.
KEY = slice(-17, -9)
START_OF_ELEMENT = re.compile(r"\A<[\w-]+")  # up to the name of the tag
# The placeholder of a page has stored None, or the sum of this and of the options of additions.
WITH_NONCE = 1  # the tag of its script needs a nonce


def rendered(
    html_by_text: Mapping[bytes, str],
    placeholders: Mapping[bytes, Placeholder],
    state: PageState,
    delivery: Delivery,
) -> dict[bytes, str]:
    """Returns the HTML of the placeholders that the script is about, by their texts.

    In the answer to a script it is the element as JSON, see `elements`.
    """
    html = {}
    page = placeholders.get(_first(placeholders, PAGE))  # None for a page without the script
    for text, placeholder in placeholders.items():
        if placeholder.kind == TEXT:
            html[text] = _seconds(placeholder)
        elif page is not None and placeholder.kind in OF_ELEMENTS:
            html[text] = _for_script(html_by_text[text], key=text[KEY].decode(), page=page)
    if page is not None:
        html.update(_of_page(placeholders, state, delivery))
    return html


def element_keys(placeholder: Placeholder) -> list[str]:
    """Returns the names by which the page's script may find the element of the placeholder.

    There is one for each key of the site, because the page may be older than the present key.
    """
    salt = keys.salt(layouts.PLACEHOLDER)
    body = placeholder.body
    signatures = [digest(salt, body), *earlier_digests(salt, body)]
    return [f"{signature}!"[KEY] for signature in signatures]


def _seconds(placeholder: Placeholder) -> str:
    """Returns the least number of seconds that reading the text takes."""
    return str(reading.least_seconds(placeholder.stored or 0))


def _for_script(html: str, *, key: str, page: Placeholder) -> str:
    """Returns the element with its key for the page's script: as HTML in a page, as JSON in an
    answer, see `elements`.
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


def _of_page(
    placeholders: Mapping[bytes, Placeholder], state: PageState, delivery: Delivery
) -> dict[bytes, str]:
    """Returns what the tag of the page's script says, or what additions tell in the answer to a
    script.

    An answer has neither version nor token, because the script has these already.
    """
    text_of_page = _first(placeholders, PAGE)
    if placeholders[text_of_page].subject != ANSWER:
        return _script(placeholders, text_of_page, delivery=delivery)
    told = {}
    for text, placeholder in placeholders.items():
        if placeholder.kind == TOLD:
            addition = additions.named(placeholder.subject)
            told[text] = addition.told([*placeholders.values()], state) if addition else ""
    return told


def _script(
    placeholders: Mapping[bytes, Placeholder], text_of_page: bytes, *, delivery: Delivery
) -> dict[bytes, str]:
    """Returns the HTML of the page's placeholder, and of the mark of the page's text if it has one.

    It is the version of the script, the nonce, the attributes of additions and the page's token.
    The mark has the end of the token.
    """
    page = placeholders[text_of_page]
    on_page = [entry for entry in placeholders.values() if entry.kind in OF_ELEMENTS]
    options = (page.stored or 0) & ~WITH_NONCE
    # A placeholder stands within an attribute. What takes its place ends that attribute and begins
    # others, the last of which the quote behind the placeholder ends.
    attributes = _nonce(page, delivery)
    for addition in additions.among(options):
        for name, value in addition.attributes(on_page[:MOST_ELEMENTS]).items():
            attributes += f'" {name}="{escape(value)}'
    attributes += '" data-page="'
    text_of_mark = _first(placeholders, TEXT)
    mark = placeholders.get(text_of_mark)
    token = token_of(
        page.subject,
        on_page,
        () if mark is None else (mark.subject, mark.stored),
        is_counted=delivery.is_counted,
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


def _nonce(page: Placeholder, delivery: Delivery) -> str:
    """Returns the beginning of the attribute with the page's nonce, "" for a page without one."""
    has_nonce = (page.stored or 0) & WITH_NONCE
    nonce = nonce_of(delivery.request) if has_nonce else ""
    return f'" nonce="{escape(nonce)}' if nonce else ""


def nonce_of(request: Any) -> str:
    """Returns the request's nonce by the middleware of django-csp or of Django, "" without one."""
    for name in ("csp_nonce", "_csp_nonce"):
        nonce = getattr(request, name, None)
        if nonce is not None:
            return str(nonce)
    return ""
