"""The minute buckets as a list of what changed, and their sums by model."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from readtrack import buckets, keys
from readtrack.store.connection import connect

BUCKET_LIFE = 70  # minutes; record.lua sets it
AT_ONCE = 8  # buckets in one round trip: a busy minute has thousands of members
TALLY_LIFE = 10_800  # seconds: longer than a bucket and the hour it belongs to


def changed(minutes: Sequence[datetime]) -> Iterator[tuple[datetime, dict[str, int]]]:
    """Each of those minutes that had views, with its views by token."""
    client: Any = connect(patient=True)
    for start in range(0, len(minutes), AT_ONCE):
        some = minutes[start : start + AT_ONCE]
        with client.pipeline(transaction=False) as pipeline:
            for minute in some:
                pipeline.zrange(keys.trending_bucket(buckets.minute(minute)), 0, -1, withscores=True)
            answers = pipeline.execute()
        for minute, found in zip(some, answers, strict=True):
            if found:
                yield minute, {member.decode(): int(score) for member, score in found}


def tally(minute: datetime, views: Mapping[str, int]) -> None:
    """Keeps the sums of one minute by model. Doing it again replaces them."""
    sums: Counter[str] = Counter()
    for token, count in views.items():
        sums[token.partition(":")[0]] += count
    client = connect(patient=True)
    name = keys.tally(buckets.hour(minute))
    client.hset(name, mapping={f"{minute.minute}|{label}": count for label, count in sums.items()})
    client.expire(name, TALLY_LIFE)


def hour(start: datetime) -> dict[str, int]:
    """The views of each model in that hour, as far as they were tallied."""
    sums: Counter[str] = Counter()
    client: Any = connect(patient=True)
    for field, count in client.hgetall(keys.tally(buckets.hour(start))).items():
        sums[field.decode().partition("|")[2]] += int(count)
    return dict(sums)
