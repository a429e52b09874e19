"""The functions with which a site reads what was stored by time: series, visitors and views of a
period, what is usual, breakdowns, funnels and reading. Nothing here writes.

Without a period, `visitors`, `visitors_together`, `most_viewed` and `trending` are those of
`readtrack.reports`.
"""

from asgiref.sync import sync_to_async

from readtrack.numbers.reports.breakdowns import breakdown
from readtrack.numbers.reports.funnels import Stage, funnel
from readtrack.numbers.reports.rankings import most_viewed, views_in
from readtrack.numbers.reports.reads import Reading, reading
from readtrack.numbers.reports.time_series import Point, ReaderPoint, reader_series, series
from readtrack.numbers.reports.trends import trending
from readtrack.numbers.reports.usual_views import Usual, times_usual, usual, usual_hours
from readtrack.numbers.reports.visitors import visitors, visitors_together
from readtrack.numbers.sql.usual import Band

areader_series = sync_to_async(reader_series)

__all__ = ["Band", "Point", "ReaderPoint", "Reading", "Stage", "Usual"]
__all__ += ["areader_series", "reader_series", "series"]
__all__ += ["breakdown", "funnel", "reading"]
__all__ += ["most_viewed", "trending", "views_in", "visitors", "visitors_together"]
__all__ += ["times_usual", "usual", "usual_hours"]
