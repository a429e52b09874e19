"""The tests' settings with small chunks, for the chaos run."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as INSTALLED

INSTALLED_APPS = [*INSTALLED, "tests.chaos.apps.SmallChunksConfig"]
READTRACK = {}  # the time-outs of a site
