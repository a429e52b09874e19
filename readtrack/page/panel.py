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
from readtrack.page.rendering import in_language
from readtrack.reports import access
from readtrack.reports.hashes import hashes
from readtrack.reports.page_state import page_state
from readtrack.sql import period_gains, row_counts
from readtrack.store import counters, uniques
from readtrack.texts import title_of


def placed(response: Any, content: bytes, user: Any | None) -> bytes:
    """Returns the content with the first panel in it, if the user may see it.

    Caches are told to keep it for nobody.
    """
    if "html" not in response.get("Content-Type", ""):
        return content
    panels = [
        (placeholder, entry)
        for placeholder, entry in placeholders_in(content).items()
        if entry.kind == PANEL
    ]
    if not panels:  # a visitor typed the mark
        return content
    placeholder, entry = panels[0]
    subject, author = entry.subject.split("|")
    panel = ""
    with suppress(Error), in_language(entry.language):  # the page does without
        panel = _panel(subject, unquote(author), user)
    keep_apart(response, is_personal=bool(panel))
    return content.replace(placeholder, panel.encode(), 1)


def _panel(subject: str, author: str, user: Any | None) -> str:
    """Returns the panel as HTML; "" for a user who may not see it."""
    if user is None or not access.may_view_any_of(user, author):
        return ""
    parsed = subjects.parse_subject(subject)
    if parsed is None:
        return ""
    model, pk = parsed
    obj = model._base_manager.filter(pk=pk).first()
    if obj is None or not access.may_view_numbers(user, obj):
        return ""
    is_staff = getattr(user, "is_staff", False)  # others cannot open the object's page
    context = {
        "object": obj,
        "title": title_of(obj),
        "url": access.numbers_url(obj) if is_staff else "",
        **_numbers(subject),
    }
    return render_to_string("readtrack/panel.html", context).strip()


def _numbers(subject: str) -> dict[str, Any]:
    """Returns the numbers as text, in one round trip.

    While Redis is down, they are those of the last flush.
    """
    column = subjects.subject_column(subject)
    until = buckets.hour_index(buckets.now()) + 1
    none = row_counts.RowCounts(0, 0)
    # SQL comes first, because what is settled or written in between would count twice.
    gained = period_gains.gains([column], since=until - 24, until=until).get(column, none)
    stored = row_counts.by_subject([subject]).get(subject, none)
    reads = counters.hashes([subject], ["reading"])
    state = page_state(counts={subject: stored.views}, others=(uniques.visitors([subject]), *reads))
    is_live = bool(state.others and all(state.others))  # else their server is silent
    views = state.views[subject]
    live_visitors = 0
    reading: dict[counters.Name, counters.Hash] = {}
    if is_live:
        visitors_by_subject, reading = state.others
        live_visitors = visitors_by_subject[subject]
    in_redis = {name: answer for name, answer in reading.items() if answer.counts}
    read_counts = hashes([subject], ["reading"], in_redis)["reading", subject]
    return {
        "is_live": is_live,
        "views": numerals.exact(views),
        "day_views": numerals.exact(gained.views + views - stored.views) if conf.HISTORY else "",
        # A sketch may be higher.
        "visitors": numerals.exact(min(views, max(live_visitors, stored.visitors))),
        "reads": numerals.exact(read_counts[READ]) if read_counts else "",
    }
