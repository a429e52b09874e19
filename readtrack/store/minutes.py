"""The minute buckets as a list of what changed."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from readtrack import buckets, keys
from readtrack.store.connection import connect

BUCKET_LIFE = 70  # minutes; record.lua sets it
AT_ONCE = 8  # buckets in one round trip: a busy minute has thousands of members


def changed(minutes: Sequence[datetime]) -> Iterator[list[str]]:
    """The tokens viewed in each of those minutes."""
    client: Any = connect(patient=True)
    for start in range(0, len(minutes), AT_ONCE):
        some = minutes[start : start + AT_ONCE]
        with client.pipeline(transaction=False) as pipeline:
            for minute in some:
                pipeline.zrange(keys.trending_bucket(buckets.minute(minute)), 0, -1)
            answers = pipeline.execute()
        for found in answers:
            yield [member.decode() for member in found]
