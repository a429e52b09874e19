"""Settings of the server for assistants in the tests. Its logs go to the standard output, as those
of a careless site do.
"""

from threading import current_thread, main_thread
from typing import Any

from tests.settings import *  # noqa: F403 - as a site's settings for one host do it
from tests.settings import INSTALLED_APPS as INSTALLED_APPS

READTRACK = {
    "NUMBERS": {"dimensions": ["referrer", "device"], "funnels": True},
    "TIMEOUT": 10.0,
}
LOGGING = {
    "version": 1,
    "handlers": {"out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}},
    "root": {"handlers": ["out"], "level": "DEBUG"},
    # These log while the command starts, before there is anything to protect.
    "loggers": {"asyncio": {"level": "INFO"}, "redis": {"level": "INFO"}},
}


class OneThread:
    """Stands for what a site keeps by thread, such as its tenant: other threads find no tables."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "default" if current_thread() is main_thread() else "lite"

    db_for_write = db_for_read


DATABASE_ROUTERS = [f"{__name__}.OneThread"]
