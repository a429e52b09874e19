"""The division of this process: that of the settings, or an earlier one while keys are moved."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.core.signals import setting_changed

from readtrack.cluster.options import cluster_options
from readtrack.parts import Division
from readtrack.shipped import CLUSTER_FACTORY

# The earlier number of partitions, within `divided_as_before`; 0 outside of it.
_before: ContextVar[int] = ContextVar("_before", default=0)


def division() -> Division:
    """Returns how the keys and the flush are divided."""
    options = cluster_options()
    before = _before.get()
    return Division(
        partitions=before or options.partitions,
        flush_tasks=options.flush_tasks,
        factory=CLUSTER_FACTORY,
        renaming="readtrack.cluster.renaming",
        is_earlier=before > 0,
    )


@contextmanager
def divided_as_before(partitions: int) -> Iterator[None]:
    """Makes this process name keys by an earlier number of partitions within the block."""
    token = _before.set(partitions)
    _forget_names()
    try:
        yield
    finally:
        _before.reset(token)
        _forget_names()


def _forget_names() -> None:
    """Forgets all that depends on the number of partitions, as after a change of the setting."""
    setting_changed.send(None, setting="READTRACK", value=None, enter=False)
