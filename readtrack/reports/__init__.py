"""The functions with which a site reads counts, visitors, read state, series, funnels and trends.
Nothing here writes.

`views` and `unread` are for pages: while Redis is down they return SQL's counts and no dots.
"""

from asgiref.sync import sync_to_async

from readtrack.reports.audience import readers_of, unread_by
from readtrack.reports.breakdowns import breakdown
from readtrack.reports.counts import has_seen, views, visitors, visitors_together
from readtrack.reports.dots import (
    as_of,
    first_unread,
    read_until,
    reader_counts,
    unread,
    unread_counts,
    unread_total,
)
from readtrack.reports.funnels import Stage, funnel
from readtrack.reports.rankings import most_viewed, views_in
from readtrack.reports.reads import Reading, reading
from readtrack.reports.skipped import skips
from readtrack.reports.time_series import Point, ReaderPoint, reader_series, series
from readtrack.reports.trends import Trend, trending
from readtrack.reports.usual_views import Usual, times_usual, usual, usual_hours
from readtrack.reports.while_away import Unread, unread_digest
from readtrack.sql.usual import Band
from readtrack.store.uniques import UniquesError

aviews = sync_to_async(views)
aunread = sync_to_async(unread)
aunread_counts = sync_to_async(unread_counts)
aunread_digest = sync_to_async(unread_digest)
aunread_total = sync_to_async(unread_total)
afirst_unread = sync_to_async(first_unread)
aread_until = sync_to_async(read_until)
areader_counts = sync_to_async(reader_counts)
areader_series = sync_to_async(reader_series)

__all__ = ["Point", "ReaderPoint", "Reading", "Stage", "Trend", "UniquesError"]
__all__ += ["Band", "Usual", "times_usual", "usual", "usual_hours"]
__all__ += ["as_of", "reader_counts", "skips", "unread", "unread_counts", "unread_total", "views"]
__all__ += ["afirst_unread", "aread_until", "first_unread", "read_until"]
__all__ += ["readers_of", "unread_by"]
__all__ += ["has_seen", "visitors", "visitors_together"]
__all__ += ["breakdown", "funnel", "reading"]
__all__ += ["most_viewed", "reader_series", "series", "trending", "views_in"]
__all__ += ["areader_counts", "areader_series", "aunread", "aunread_counts"]
__all__ += ["Unread", "aunread_digest", "unread_digest"]
__all__ += ["aunread_total", "aviews"]
