"""The panel: an object's numbers in its own page, for users who may see them."""

from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from django.db import Error
from django.db.models import Model
from django.template.loader import render_to_string

from readtrack import access, buckets, numerals, subjects
from readtrack.hits.stages import READS
from readtrack.numbers import live_counters
from readtrack.numbers.access import may_view_any_of
from readtrack.numbers.changes import multiple
from readtrack.numbers.options import numbers_options
from readtrack.numbers.reports.hashes import hashes
from readtrack.numbers.reports.usual_views import question, rated
from readtrack.numbers.sql import period_gains, usual
from readtrack.page.contents import keep_apart
from readtrack.page.placeholders import PANEL, placeholders_in
from readtrack.page.rendering import in_language
from readtrack.reports.page_state import PageQuestion
from readtrack.sql import row_counts
from readtrack.store import counters, uniques
from readtrack.texts import title_of


def placed(response: Any, content: bytes, user: Any | None) -> bytes:
    """Returns the content with its panel filled in, or without one if the user may not see it.

    Sets the headers that keep caches from giving it to others. Only the first panel is filled in.
    """
    if "html" not in response.get("Content-Type", ""):
        return content
    for text, placeholder in placeholders_in(content).items():
        if placeholder.kind != PANEL:
            continue
        subject, author = placeholder.subject.split("|")
        panel = ""
        # Without SQL, the page is shown without the panel.
        with suppress(Error), in_language(placeholder.language):
            panel = _panel(subject, unquote(author), user)
        keep_apart(response, is_personal=bool(panel))
        return content.replace(text, panel.encode(), 1)
    return content  # a visitor typed what looks like a panel's placeholder


def _panel(subject: str, author: str, user: Any | None) -> str:
    """Returns the panel as HTML; "" for a user who may not see it.

    `author` is the primary key of the object's author as text, "" without one.
    """
    if user is None or not may_view_any_of(user, author):
        return ""
    parsed = subjects.parse_subject(subject)
    if parsed is None:
        return ""
    model, pk = parsed
    obj = model._base_manager.filter(pk=pk).first()
    if obj is None or not access.may_view_numbers(user, obj):
        return ""
    url = ""
    if getattr(user, "is_staff", False):  # others cannot open the page of the object's numbers
        url = access.numbers_url(obj)
    context = {"object": obj, "title": title_of(obj), "url": url, **numbers(subject, obj)}
    return render_to_string("readtrack/panel.html", context).strip()


def numbers(subject: str, obj: Model) -> dict[str, Any]:
    """Returns the numbers of an object as texts for the template, in one round trip to Redis.

    A text is "" if the site does not keep the number. While Redis is down, the numbers are those of
    the last flush.
    """
    column = subjects.subject_column(subject)
    end_of_hour = buckets.hour_index(buckets.now()) + 1
    zero = row_counts.RowCounts(0, 0)
    # SQL is read before Redis, because what is settled or written in between would count twice.
    gains = period_gains.gains([column], since=end_of_hour - 24, until=end_of_hour)
    stored = row_counts.by_subject([subject]).get(subject, zero)
    comparable = rated([obj])
    stored_usual = usual.stored(question(comparable.values()))
    visitors_call = uniques.visitors([subject])
    [reading_call] = live_counters.hashes([subject], ["reading"])
    page_question = PageQuestion(counts={subject: stored.views})
    page_question.ask(visitors_call, reading_call)
    state = page_question.state()
    # An empty result is that of a silent server.
    is_live = all(call.has_result and call.result for call in (visitors_call, reading_call))
    live_visitors = 0
    reading: dict[counters.Name, live_counters.Hash] = {}
    if is_live:
        live_visitors = visitors_call.result[subject]
        reading = reading_call.result
    in_redis = {name: counted for name, counted in reading.items() if counted.counts}
    read_counts = hashes([subject], ["reading"], in_redis)["reading", subject]
    views = state.views[subject]
    day_views = ""
    if numbers_options().history:
        unflushed = views - stored.views
        day_views = numerals.exact(gains.get(column, 0) + unflushed)
    times_usual = ""
    for one in comparable.values():
        comparison = one.compared(views, stored_usual, at=buckets.now())
        if comparison is not None:
            times_usual = multiple(comparison.times)
    return {
        "is_live": is_live,
        "views": numerals.exact(views),
        "day_views": day_views,
        "times_usual": times_usual,
        # A sketch is not exact, so it may be higher than the views.
        "visitors": numerals.exact(min(views, max(live_visitors, stored.visitors))),
        "reads": numerals.exact(read_counts[READS]) if read_counts else "",
    }
