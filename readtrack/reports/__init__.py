"""Functions by which a site reads counts, visitors, read state, series, funnels and trends. Nothing here writes.

`views` and `unread` are for pages: while Redis is down they return SQL's counts and no dots.
"""

from readtrack.reports.breakdowns import Reading as Reading
from readtrack.reports.breakdowns import Stage as Stage
from readtrack.reports.breakdowns import breakdown as breakdown
from readtrack.reports.breakdowns import funnel as funnel
from readtrack.reports.breakdowns import reading as reading
from readtrack.reports.live import UniquesError as UniquesError
from readtrack.reports.live import areader_counts as areader_counts
from readtrack.reports.live import as_of as as_of
from readtrack.reports.live import aunread as aunread
from readtrack.reports.live import aunread_counts as aunread_counts
from readtrack.reports.live import aviews as aviews
from readtrack.reports.live import has_seen as has_seen
from readtrack.reports.live import reader_counts as reader_counts
from readtrack.reports.live import skips as skips
from readtrack.reports.live import unread as unread
from readtrack.reports.live import unread_counts as unread_counts
from readtrack.reports.live import views as views
from readtrack.reports.live import visitors as visitors
from readtrack.reports.live import visitors_together as visitors_together
from readtrack.reports.popular import Trend as Trend
from readtrack.reports.popular import most_viewed as most_viewed
from readtrack.reports.popular import trending as trending
from readtrack.reports.popular import views_in as views_in
from readtrack.reports.timelines import Point as Point
from readtrack.reports.timelines import ReaderPoint as ReaderPoint
from readtrack.reports.timelines import areader_series as areader_series
from readtrack.reports.timelines import reader_series as reader_series
from readtrack.reports.timelines import series as series
