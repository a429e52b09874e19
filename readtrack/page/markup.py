"""The HTML of counts and dots."""

from collections.abc import Mapping
from functools import cache

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import ngettext

from readtrack import numerals
from readtrack.conf import conf
from readtrack.page.placeholders import DOT, EXACT, NEWS, OF_COUNTS, WORDS, Placeholder
from readtrack.reports import live


def render(waiting: Mapping[bytes, Placeholder], glance: live.PageState) -> dict[bytes, str]:
    """The HTML of each placeholder of a page; the dots of a page are alike, so one is rendered for all."""
    html = cache(_html)
    return {raw: html(entry.kind, _number(entry, glance)) for raw, entry in waiting.items()}


def _number(entry: Placeholder, glance: live.PageState) -> int:
    """How much is new to the reader, or how often it was viewed."""
    if entry.kind in OF_COUNTS:
        return live.shown_views(glance.totals.get(entry.subject), stored=entry.stored)
    items = glance.unread.get(entry.subject, 0)
    return min(items, 1) if entry.kind == DOT else items


def _html(kind: str, number: int) -> str:
    if kind in OF_COUNTS:
        return count(number, kind=kind)
    if kind == DOT:
        return dot(is_unread=bool(number))
    return unread_count(number) if kind == NEWS else ""  # the marks of `if_unread` are nothing themselves


def count(views: int, *, kind: str) -> str:
    """A count as HTML: short with the exact number as its title, also in words, or the exact number alone."""
    if kind == EXACT:
        return text(views, kind=kind)
    return format_html(
        '<span class="readtrack-count" title="{}">{}</span>', numerals.exact(views), text(views, kind=kind)
    )


def text(views: int, *, kind: str) -> str:
    """A count as text: exact, short, or short and in words."""
    if kind == EXACT:
        return numerals.exact(views)
    short = numerals.short(views)
    return ngettext("%(views)s view", "%(views)s views", views) % {"views": short} if kind == WORDS else short


def dot(*, is_unread: bool) -> str:
    """A dot as HTML, or nothing."""
    return render_to_string("readtrack/dot.html").strip() if is_unread else ""


def unread_count(items: int) -> str:
    """How much is new as HTML, or nothing. A bitmap knows only that something is: a dot."""
    if not items or conf.READ_STATE == "bitmap":
        return dot(is_unread=bool(items))
    words = {"items": items, "exact": numerals.exact(items), "short": numerals.short(items)}
    return render_to_string("readtrack/unread_count.html", words).strip()
