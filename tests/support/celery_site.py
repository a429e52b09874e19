"""A site's Celery with a queue in memory, and a worker that runs in a thread of the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.signals import setup_logging


@contextmanager
def celery_site() -> Iterator[Celery]:
    """Returns the Celery, and closes it at the end."""
    app = Celery("site", broker="memory://", backend="cache+memory://", set_as_current=True)
    app.conf.broker_transport_options = {"polling_interval": 0.01}
    app.conf.broker_connection_retry_on_startup = False
    yield app
    app.close()


@contextmanager
def celery_worker(app: Celery) -> Iterator[None]:
    """Runs a worker that leaves the loggers alone.

    By itself a worker sets the level of the root logger and removes its handlers, so later tests
    in the same process would miss what is logged.
    """
    setup_logging.connect(_configure_nothing)
    try:
        with start_worker(app, pool="solo", perform_ping_check=False):
            yield
    finally:
        setup_logging.disconnect(_configure_nothing)


def _configure_nothing(**kwargs: Any) -> None:
    """Celery configures no logger if this signal has a receiver."""
