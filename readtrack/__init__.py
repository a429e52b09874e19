"""View counts that survive reloads, robots and restarts, and unread dots for millions of users.

The middleware records a hit in Redis in one round trip, template tags show counts and dots, and
the flush carries the counts into the site's own table. The folder names are the map: `tracker`
writes, `reports` reads, `flush` moves Redis to SQL, and only `store` names Redis.
"""

__version__ = "0.1.0"

# `INSTALLED_APPS += readtrack.EVERYTHING` is the core with all its parts, except those that need
# another package: `readtrack.contrib`.
EVERYTHING = [
    "readtrack",
    "readtrack.numbers",
    "readtrack.digest",
    "readtrack.api",
    "readtrack.alerts",
    "readtrack.metrics",
    "readtrack.imports",
]
