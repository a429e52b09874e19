"""The HTML that takes the place of each placeholder."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import NamedTuple

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import ngettext, override

from readtrack import numerals, parts
from readtrack.page.placeholders import (
    DOT,
    EXACT,
    OF_COUNTS,
    OF_REPORTS,
    UNREAD,
    WORDS,
    Placeholder,
)
from readtrack.reports.page_state import PageState
from readtrack.store.read_state import form_of

COUNT_HTML = '<span class="readtrack-count" title="{}">{}</span>'


class Delivery(NamedTuple):
    """How a page is sent, for what takes the place of its placeholders."""

    request: HttpRequest | None = None  # that gets the page
    is_counted: bool = False  # the page's views are counted with it


NO_DELIVERY = Delivery()


def rendered(
    placeholders: Mapping[bytes, Placeholder],
    state: PageState,
    *,
    delivery: Delivery = NO_DELIVERY,
) -> dict[bytes, str]:
    """Returns the HTML of each placeholder by its text; "" for the tags of `if_unread`."""
    html_by_text: dict[bytes, str] = {}
    for language in {placeholder.language for placeholder in placeholders.values()}:
        with in_language(language):
            render_items = cache(new_items)  # because many dots of a page are the same
            for text, placeholder in placeholders.items():
                if placeholder.language == language:
                    html = _element(placeholder, state, render_items=render_items)
                    html_by_text[text] = html
    reporting = parts.reporting()
    if reporting and any(entry.kind in OF_REPORTS for entry in placeholders.values()):
        html_by_text.update(reporting.rendered(html_by_text, placeholders, state, delivery))
    return html_by_text


def in_language(language: str) -> AbstractContextManager[None]:
    """Returns the context in which texts have that language, "" for the one that is active."""
    if not language:
        return nullcontext()
    return override(language)


def _element(
    placeholder: Placeholder, state: PageState, *, render_items: Callable[[int, int | None], str]
) -> str:
    """Returns the HTML of a placeholder; "" for the tags of `if_unread`, and for what a part
    renders.
    """
    if placeholder.kind in OF_COUNTS:
        return _count(state.views[placeholder.subject], placeholder)
    if placeholder.kind in {DOT, UNREAD}:
        items = state.unread.get(placeholder.subject, 0)
        return _dot(items, placeholder, render_items=render_items)
    return ""


def _count(views: int, placeholder: Placeholder) -> str:
    """Returns the HTML of a count, or of EXACT the mere number."""
    kind = placeholder.kind
    # Few digits need neither the formatting of numbers nor escaping, which take longest here.
    has_few_digits = views < 1000
    if kind == EXACT:
        if has_few_digits:
            return str(views)
        return numerals.exact(views)
    if kind == WORDS:
        return format_html(COUNT_HTML, numerals.exact(views), in_words(views))
    if has_few_digits:
        return COUNT_HTML.format(views, views)
    return format_html(COUNT_HTML, numerals.exact(views), numerals.short(views))


def _dot(
    items: int, placeholder: Placeholder, *, render_items: Callable[[int, int | None], str]
) -> str:
    """Returns the HTML of a number of new items, or of a dot; "" without new items."""
    if not items:
        return ""
    form = form_of(placeholder.subject)
    if placeholder.kind == UNREAD and form.has_numbers:
        return render_items(items, form.most_counted)
    return render_items(0, None)


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
