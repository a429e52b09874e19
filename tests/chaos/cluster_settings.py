"""The tests' settings with a site's own time-out, for the chaos run on a cluster."""

from tests.settings import *  # noqa: F403

READTRACK = {"FLUSH_CHUNK": 8, "RATE_LIMIT": 0, "DEBUG_HEADER": True, "FLUSH_INTERVAL": 1}
