"""The tests' settings with a site's own time-out, for the chaos run on a cluster."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as INSTALLED

INSTALLED_APPS = [*INSTALLED, "tests.chaos.apps.SmallChunksConfig"]
READTRACK = {"RATE": (0, 10), "DEBUG_HEADER": True, "FLUSH_INTERVAL": 1}
