"""The context of the dashboard's template."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib.humanize.templatetags.humanize import naturaltime
from django.db.models import Sum
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from readtrack import buckets, reports
from readtrack.buckets import Period
from readtrack.conf import conf
from readtrack.dashboard import charts
from readtrack.hits.addresses import NOTICES
from readtrack.hits.hit import Reason
from readtrack.models import FlushRun
from readtrack.numerals import exact
from readtrack.reports import timelines
from readtrack.sql import row_counts, runs
from readtrack.store.circuit import fail_open, noticing_absence
from readtrack.store.skips import skips_by_reason
from readtrack.subjects import counted_models

Points = Sequence[tuple[datetime, int | None]]  # None: not known

NOT_KNOWN = "\N{EN DASH}"

REASONS: dict[Reason, Any] = {
    "bot": _("robot, by its user agent"),
    "honeypot": _("robot, by the honeypot"),
    "repeat": _("seen by the same visitor already"),
    "rate": _("too many in a short time"),
    "prefetch": _("fetched ahead by a browser"),
    "embed": _("part of another page"),
    "method": _("not a GET"),
    "status": _("not a successful page"),
    "anonymous": _("anonymous visitors are not counted"),
    "excluded": _("left out by the site's settings, or a link of the admin"),
    "error": _("Redis failed"),
}


class Range(NamedTuple):
    """One choice of the past that the chart shows."""

    label: Any
    back: timedelta
    by: Period
    format: str
    steps: tuple[int, int]  # bars between two labels that are written out, in the wide and in the narrow chart


RANGES = {
    "day": Range(_("24 hours"), timedelta(hours=23), "hour", "H:i", (3, 6)),
    "week": Range(_("7 days"), timedelta(days=6), "day", "D j", (1, 2)),
    "month": Range(_("30 days"), timedelta(days=29), "day", "j N", (5, 10)),
    "year": Range(_("a year"), timedelta(days=364), "week", "j N", (8, 17)),
}


def dashboard_context(name: str) -> dict[str, Any]:
    """Returns the context, with the chart of that range. Without Redis its live numbers are marked as not known."""
    shown = RANGES.get(name, RANGES["day"])
    with noticing_absence() as absence:
        all_views = _stored_views()
        fresh, day_views, points = timelines.overview(back=shown.back, by=shown.by)
        trending, skips = reports.trending(10), fail_open(skips_by_reason, Counter(), 24, at=buckets.now())
    last_flush = FlushRun.objects.filter(ended__isnull=False).first()
    is_live = not absence.is_set()
    return {
        "is_live": is_live,
        # Views of rows that were deleted or reset are in the last 24 hours alone.
        "all_views": exact(max(all_views + (fresh if conf.HISTORY else 0), day_views)),
        "day_views": exact(day_views) if is_live else NOT_KNOWN,
        **_charts(points if is_live else _stored(points), shown),
        "ranges": [(name, choice.label, choice is shown) for name, choice in RANGES.items()],
        "top": [(row, exact(views)) for row, views in _top(10)],
        "trending": [(trend.obj, exact(trend.views)) for trend in trending],
        "skips": _skips(skips),
        "notices": [gettext(text) for notice, text in NOTICES.items() if skips[notice]],
        "last_flush": last_flush,
        "is_late": last_flush is not None and _is_late(last_flush),
        "flush_read": exact(last_flush.read) if last_flush else "",
        "flush_written": exact(last_flush.written) if last_flush else "",
        "last_flush_when": naturaltime(last_flush.ended) if last_flush and last_flush.ended else "",
    }


def _stored_views() -> int:
    all_held = map(row_counts.held, counted_models())
    return sum(held.rows.aggregate(sum=Sum(held.views, default=0))["sum"] for held in all_held)


def _top(limit: int) -> list[tuple[Any, int]]:
    rows: list[tuple[Any, int]] = []
    for model in counted_models():
        rows += row_counts.most_viewed(model._default_manager.all(), limit)
    return sorted(rows, key=lambda row: row[1], reverse=True)[:limit]


def _is_late(run: FlushRun) -> bool:
    return buckets.now() - buckets.now(run.ended) > runs.late_after()  # beat or its worker may be down


def _skips(found: Mapping[Any, int]) -> list[tuple[Any, str, int]]:
    """Returns reason, count and share (%) of the hits that did not count, most frequent first."""
    skips = sorted(((reason, found[reason]) for reason in REASONS), key=lambda skip: -skip[1])
    total = sum(count for _reason, count in skips)
    return [(REASONS[reason], exact(count), 100 * count // total) for reason, count in skips if count]


def _stored(points: Points) -> Points:
    """Returns the points, with None for those after the last successful flush."""
    good = runs.last_good()
    return [(start, views if good and start <= good.began else None) for start, views in points]


def _charts(points: Points, shown: Range) -> dict[str, Any]:
    """Returns the charts for wide and for narrow screens, and their numbers as text."""
    labels = [date_format(timezone.localtime(start), shown.format) for start, _views in points]
    values = [views for _start, views in points]
    summary = gettext("Views of the whole site, %(range)s; %(views)s in all.")
    summary %= {"range": shown.label, "views": exact(sum(views or 0 for views in values))}
    drawn = [
        charts.bars(gettext("Views over time"), labels, values, description=summary, step=step, shape=shape)
        for shape, step in zip((charts.WIDE, charts.NARROW), shown.steps, strict=True)
    ]
    texts = [NOT_KNOWN if views is None else exact(views) for views in values]
    return {"charts": drawn, "summary": summary, "numbers": list(zip(labels, texts, strict=True))}
