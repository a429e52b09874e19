"""The tags of numbers by time, for `{% load readtrack %}` and for Jinja2."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.apps import apps
from django.utils.safestring import SafeString

from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.reports.reads import reads
from readtrack.numbers.sql.popular import DAYS, By
from readtrack.page import tags
from readtrack.page.placeholders import COUNT, PANEL, Placeholder
from readtrack.page.stream import outside_coroutine
from readtrack.reports import Trend


def add(library: template.Library) -> None:
    """Adds the tags to the library. `most_viewed` and `trending` know periods then."""
    library.simple_tag(most_viewed)
    library.simple_tag(trending)
    library.simple_tag(views_in)
    library.simple_tag(read_count)
    library.simple_tag(panel, takes_context=True, name="readtrack_panel")


def jinja_functions() -> Mapping[str, Any]:
    """Returns the functions for Jinja2, by name."""
    from jinja2 import pass_context

    return {"read_count": read_count, "readtrack_panel": pass_context(panel)}


def most_viewed(of: Any, limit: int = 10, days: int | None = None, by: By | None = None) -> Any:
    """`{% most_viewed "blog.Post" days=7 limit=5 as posts %}` sets the posts, of the last 1, 7, 30
    or 90 days.

    Each has its number as `in_period`. Without `days` they are those of all time. A queryset may
    stand in place of the model's name. With `by="visitors"` they are those with the most new
    visitors, with `by="reads"` the most read, with `by="seen"` those with the most views that were
    seen. By default they are those with the most views, or seen views where 'rank_by' of NUMBERS
    says so.
    """
    if days not in (None, *DAYS):
        listed = ", ".join(map(str, DAYS))
        raise ValueError(f"most_viewed has lists of {listed} days, not of {days}.")
    rows = apps.get_model(of) if isinstance(of, str) else of

    def loaded() -> Any:
        best = numbers_reports.most_viewed(rows, limit, days=days, by=by)
        len(best)  # loads them: a template in an async view cannot
        return best

    return outside_coroutine(loaded)


def trending(limit: int = 10, hours: int | None = None, of: str = "") -> list[Trend]:
    """`{% trending limit=5 as trends %}` sets the objects of the last hour: `{{ trend.obj }}`, `{{
    trend.views }}`.

    `hours=24` makes it the last day, `of="blog.Post"` a single model.
    """
    model = apps.get_model(of) if of else None
    return outside_coroutine(lambda: numbers_reports.trending(limit, hours=hours, model=model))


def views_in(obj: Any, days: int = 7) -> int | str:
    """`{% views_in post days=7 %}` shows the views of the last days. Each tag makes two queries and
    takes a round trip of its own.
    """
    if not Placeholder.of(COUNT, obj):
        return ""
    return outside_coroutine(lambda: numbers_reports.views_in([obj], days=days)[obj])


def panel(context: Any, obj: Any) -> SafeString:
    """`{% readtrack_panel post %}` shows the numbers of the post to those who may see them, and
    nothing to others.

    Once in a page, which comes through the middleware and is no shared page.
    """
    if _is_shared(context):
        return SafeString()
    return tags.html_of(Placeholder.of(PANEL, obj), context)


def _is_shared(context: Any) -> bool:
    """Returns True for a page that is the same for everybody, and for one that the middleware does
    not fill in.
    """
    recorder = tags.recorder_of(tags.request_of(context))
    return recorder is None or recorder.is_shared


def read_count(obj: Any) -> int | str:
    """`{% read_count post %}` shows how often the text was really read. Each asks Redis for
    itself.
    """
    if not Placeholder.of(COUNT, obj):  # has no counts; with DEBUG that is logged
        return ""
    return outside_coroutine(lambda: reads(obj))
