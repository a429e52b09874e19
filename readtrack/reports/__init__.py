"""The functions with which a site reads counts, visitors, read state and trends. Nothing here
writes.

`views` and `unread` are for pages: while Redis is down they return SQL's counts and no dots. What
is read of a period is in `readtrack.numbers.reports`.
"""

from asgiref.sync import sync_to_async

from readtrack.reports.counts import has_seen, views, visitors, visitors_together
from readtrack.reports.dots import as_of, reader_counts, unread, unread_counts, unread_total
from readtrack.reports.rankings import most_viewed
from readtrack.reports.skipped import skips
from readtrack.reports.trends import Trend, trending
from readtrack.store.uniques import UniquesError

aviews = sync_to_async(views)
aunread = sync_to_async(unread)
aunread_counts = sync_to_async(unread_counts)
aunread_total = sync_to_async(unread_total)
areader_counts = sync_to_async(reader_counts)

__all__ = ["Trend", "UniquesError"]
__all__ += ["has_seen", "most_viewed", "skips", "trending", "views"]
__all__ += ["visitors", "visitors_together"]
__all__ += ["as_of", "reader_counts", "unread", "unread_counts", "unread_total"]
__all__ += ["areader_counts", "aunread", "aunread_counts"]
__all__ += ["aunread_total", "aviews"]
