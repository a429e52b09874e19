"""View counts that survive reloads, robots and restarts, and unread dots for millions of users.

The middleware records a hit in Redis in one round trip, template tags show counts and dots, and
the flush carries the counts into the site's own table. The folder names are the map: `tracker`
writes, `reports` reads, `flush` moves Redis to SQL, and only `store` names Redis.
"""

from readtrack.shipped import PARTS

__version__ = "0.1.0"

# `INSTALLED_APPS += readtrack.EVERYTHING` is the core with all its parts, except
# `readtrack.contrib`, which is for sites that have another package. The dashboard needs the extra
# `dashboard`.
EVERYTHING = ["readtrack", *PARTS]
