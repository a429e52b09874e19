"""The admin's page of the counts that the last flush stored, for sites without a dashboard."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.db.models import Model
from django.utils.translation import ngettext

from readtrack import buckets
from readtrack.models.rows import past_caches
from readtrack.numerals import exact, share
from readtrack.sql import row_counts, runs
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import counted_models, label_of
from readtrack.texts import title_of

LISTED = 20  # objects of each model
CHARTED = 10  # objects in the chart


class Row(NamedTuple):
    """An object in the table of its model."""

    title: str
    url: str  # of the object's form; "" for a user who may not see it
    counts: RowCounts
    views: str
    visitors: str
    share: str  # of the views of all rows of the table, in percent
    length: int  # of the bar, in percent of that of the first row


class Section(NamedTuple):
    """The table of the most viewed objects of a model."""

    label: str  # of the model
    title: str
    rows: Sequence[Row]


class Bar(NamedTuple):
    """An object in the chart."""

    title: str
    views: str  # such as `1,234 views`
    visitors: str  # such as `56 visitors`
    views_length: int  # in percent of that of the first bar
    visitors_length: int


def page_context(form_url: Callable[[Model], str]) -> dict[str, Any]:
    """Returns the context of the page's template.

    `form_url` returns the address of an object's form; "" for an object without one. Makes a query
    for each model that extends Tracked, up to three for each other model, and one for the last
    flush.
    """
    sections = [_section(model, form_url) for model in counted_models()]
    last_flush = runs.newest_ended()
    is_late = False
    if last_flush is not None:
        is_late = buckets.now() - buckets.now(last_flush.ended) > runs.late_after()
    return {
        "sections": [section for section in sections if section.rows],
        "not_viewed": [section.title for section in sections if not section.rows],
        "bars": _bars([row for section in sections for row in section.rows]),
        "last_flush": last_flush,
        "is_late": is_late,
    }


def _section(model: type[Model], form_url: Callable[[Model], str]) -> Section:
    """Returns the table of the model, which is empty if none of its objects was viewed."""
    viewed = row_counts.most_viewed(past_caches(model._default_manager.all()), LISTED)
    views_of_rows = [counts.views for _obj, counts in viewed]
    most_views = max(views_of_rows, default=0)
    all_views = sum(views_of_rows)
    rows: list[Row] = []
    for obj, counts in viewed:
        row = Row(
            title=title_of(obj),
            url=form_url(obj),
            counts=counts,
            views=exact(counts.views),
            visitors=exact(counts.visitors),
            share=share(100 * counts.views / all_views),
            length=_length(counts.views, most_views),
        )
        rows.append(row)
    return Section(label_of(model), str(model._meta.verbose_name_plural), rows)


def _bars(rows: Sequence[Row]) -> list[Bar]:
    """Returns the bars of those of the rows that have the most views."""
    charted_rows = sorted(rows, key=lambda row: row.counts.views, reverse=True)[:CHARTED]
    most_views = max((row.counts.views for row in charted_rows), default=0)
    bars: list[Bar] = []
    for row in charted_rows:
        views, visitors = row.counts
        views_text = ngettext("%(count)s view", "%(count)s views", views)
        visitors_text = ngettext("%(count)s visitor", "%(count)s visitors", visitors)
        bar = Bar(
            title=row.title,
            views=views_text % {"count": row.views},
            visitors=visitors_text % {"count": row.visitors},
            views_length=_length(views, most_views),
            visitors_length=_length(visitors, most_views),
        )
        bars.append(bar)
    return bars


def _length(number: int, highest: int) -> int:
    """Returns the length of a bar, in percent of that for the highest number. A number above 0 has
    a bar of 1 at least.
    """
    if not number:
        return 0
    return min(100, max(1, 100 * number // highest))
