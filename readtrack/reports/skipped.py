"""Hits that did not count, by reason."""

from collections import Counter
from datetime import datetime

from readtrack import buckets
from readtrack.hits.hit import REASONS, Reason
from readtrack.store import scripts
from readtrack.store.circuit import fail_open
from readtrack.store.skips import by_hour


def skips(hours: int = 24, *, at: datetime | None = None) -> dict[Reason, int]:
    """Returns the number of hits in the last hours (48 at most) that did not count, by reason.

    It has every reason. While Redis is down all numbers are 0.
    """
    call = by_hour(hours, at=buckets.now(at))
    counts_by_hour: list[Counter[str]] = fail_open(scripts.run, [], call)
    counts = sum(counts_by_hour, Counter[str]())
    return {reason: counts[reason] for reason in REASONS}
