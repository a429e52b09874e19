"""Hashes of counts: funnels, reading and dimensions, by SQL's archive and by Redis."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from readtrack.reports.page_state import is_sound
from readtrack.sql import archive
from readtrack.store import counters, keys
from readtrack.store.circuit import fail_open


def hashes(
    subjects: Sequence[str],
    kinds: Sequence[str],
    live: Mapping[counters.Name, counters.Hash] | None = None,
) -> dict[counters.Name, Counter[str]]:
    """Returns the counts by kind and subject; a hash that Redis lost takes a query and another
    round trip.

    `live` is what Redis has, where a caller has asked already. While Redis is down the counts are
    those that SQL stores.
    """
    if live is None:
        live = fail_open(counters.live_hashes, {}, subjects, kinds)
    in_redis = dict(live)
    stored = _stored(subjects, kinds, live)
    if any(stored.values()):
        # Read again after SQL, so that SQL's count is not added to a hash that was settled in
        # between.
        in_redis |= fail_open(counters.live_hashes, {}, subjects, kinds)
    counts = {name: Counter(counted.counts) for name, counted in in_redis.items()}
    return counts | _merged(in_redis, stored)


def _stored(
    subjects: Sequence[str], kinds: Sequence[str], live: Mapping[counters.Name, counters.Hash]
) -> dict[counters.Name, Mapping[str, int]]:
    """Returns SQL's counts of the hashes that Redis does not have, or has unsettled."""
    wanted = [(kind, subject) for kind in kinds for subject in subjects]
    lacking = [name for name in wanted if name not in live or not live[name].is_settled]
    stored = archive.breakdowns(lacking) if lacking else {}
    return {name: stored[name] for name in lacking}


def _merged(
    in_redis: Mapping[counters.Name, counters.Hash],
    stored: Mapping[counters.Name, Mapping[str, int]],
) -> dict[counters.Name, Counter[str]]:
    """Returns the counts of the stored hashes, merged with what Redis has of them."""
    counts = {}
    is_partition_sound = cache(is_sound)
    for name, stored_counts in stored.items():
        _, subject = name
        in_sql = Counter(stored_counts)
        live = in_redis.get(name, counters.Hash({}))
        # An unsettled hash lacks SQL's counts, which are added, unless Redis went back.
        if live.is_settled or not in_sql or not is_partition_sound(keys.tag(subject)):
            counts[name] = Counter(live.counts) | in_sql
        else:
            counts[name] = Counter(live.counts) + in_sql
    return counts
