"""The panel: an object's numbers in its own page, for those who may see them."""

from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from django.db import Error
from django.template.loader import render_to_string

from readtrack import buckets, numerals, subjects
from readtrack.conf import conf
from readtrack.hits.reading import READ
from readtrack.page.contents import keep_apart
from readtrack.page.placeholders import PANEL, placeholders_in
from readtrack.reports import access
from readtrack.reports.hashes import hashes
from readtrack.reports.page_state import page_state
from readtrack.sql import period_gains, row_counts
from readtrack.store import counters, uniques
from readtrack.texts import title_of


def placed(response: Any, content: bytes, user: Any | None) -> bytes:
    """Returns the content with the first panel in it, if the user may see it. Caches are told to
    keep it for nobody.
    """
    if "html" not in response.get("Content-Type", ""):
        return content
    first = next(
        ((text, entry) for text, entry in placeholders_in(content).items() if entry.kind == PANEL),
        None,
    )
    if first is None:  # a visitor typed the mark
        return content
    shown, (subject, author) = "", first[1].subject.split("|")
    with suppress(Error):  # the page does without
        # Without VIEW_NUMBERS, for those who may not see it nothing is read but, of staff, their
        # permissions.
        may_be_shown = access.may_view_any_of(user, unquote(author))
        parsed = subjects.parse_subject(subject) if user is not None and may_be_shown else None
        obj = parsed and parsed[0]._base_manager.filter(pk=parsed[1]).first()
        if obj and access.may_view_numbers(user, obj):
            url = (
                access.numbers_url(obj) if getattr(user, "is_staff", False) else ""
            )  # others cannot open the page
            shown = render_to_string(
                "readtrack/panel.html",
                {"object": obj, "title": title_of(obj), "url": url, **_numbers(subject)},
            ).strip()
    keep_apart(response, is_personal=bool(shown))
    return content.replace(first[0], shown.encode(), 1)


def _numbers(subject: str) -> dict[str, Any]:
    """Returns the numbers as text, in one round trip; while Redis is down, those of the last flush."""
    column, until, name = (
        subjects.subject_column(subject),
        buckets.hour_index(buckets.now()) + 1,
        ("reading", subject),
    )
    # SQL comes first, because what is settled or written in between would count twice.
    gained = period_gains.gains([column], since=until - 24, until=until).get(
        column, row_counts.RowCounts(0, 0)
    )
    stored = row_counts.by_subject([subject]).get(subject, row_counts.RowCounts(0, 0))
    reads = counters.hashes([subject], [name[0]])
    state = page_state(counts={subject: stored.views}, others=(uniques.visitors([subject]), *reads))
    is_live, views = (
        bool(state.others and all(state.others)),
        state.views[subject],
    )  # else their server is silent
    visitors, reading = (
        state.others if is_live else ({subject: 0}, dict[counters.Name, counters.Hash]())
    )
    found = {one: counts for one, counts in reading.items() if counts.counts}
    counts = hashes([subject], [name[0]], found)[name]
    return {
        "is_live": is_live,
        "views": numerals.exact(views),
        "day_views": numerals.exact(gained.views + views - stored.views) if conf.HISTORY else "",
        "visitors": numerals.exact(
            min(views, max(visitors[subject], stored.visitors))
        ),  # a sketch may be higher
        "reads": numerals.exact(counts[READ]) if counts else "",
    }
