"""The HTML of counts and dots."""

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import ngettext

from readtrack import numerals, reports
from readtrack.conf import conf
from readtrack.placeholders import DOT, ELSE, END, EXACT, IF, NEWS, WORDS, Placeholder


def render(placeholder: Placeholder, glance: reports.Glance) -> str:
    """The HTML of one count or dot; of the marks of `if_unread` there is none."""
    if placeholder.kind in {IF, ELSE, END}:
        return ""
    if placeholder.kind == DOT:
        return dot(is_unread=bool(glance.unread.get(placeholder.token)))
    if placeholder.kind == NEWS:
        return unread_count(glance.unread.get(placeholder.token, 0))
    return count(reports.live(glance.totals.get(placeholder.token), stored=placeholder.stored), kind=placeholder.kind)


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
