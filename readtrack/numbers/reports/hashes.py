"""Hashes of counts (funnels, reading and dimensions), merged from SQL's archive and Redis."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from readtrack.numbers import live_counters
from readtrack.numbers.sql import hashes as stored_hashes
from readtrack.reports.page_state import is_sound
from readtrack.store import counters, keys
from readtrack.store.circuit import fail_open


def hashes(
    subjects: Sequence[str],
    kinds: Sequence[str],
    live: Mapping[counters.Name, live_counters.Hash] | None = None,
) -> dict[counters.Name, Counter[str]]:
    """Returns the counts of the hashes of these kinds, by kind and subject, then by field.

    If Redis lost a hash, that takes a query and another round trip. While Redis is down the counts
    are those that SQL stores. `live` has the hashes in Redis, if the caller has read them already.
    """
    if live is None:
        live = fail_open(live_counters.live_hashes, {}, subjects, kinds)
    in_redis = dict(live)
    stored = _stored(subjects, kinds, live)
    if any(stored.values()):
        # Redis is read again after SQL. Otherwise SQL's count would be added a second time to a
        # hash that was settled in between.
        in_redis |= fail_open(live_counters.live_hashes, {}, subjects, kinds)
    counts = {name: Counter(live_hash.counts) for name, live_hash in in_redis.items()}
    return counts | _merged(in_redis, stored)


def _stored(
    subjects: Sequence[str], kinds: Sequence[str], live: Mapping[counters.Name, live_counters.Hash]
) -> dict[counters.Name, Mapping[str, int]]:
    """Returns SQL's counts of the hashes that Redis does not have or has not settled, by kind and
    subject, then by field.
    """
    hash_names = [(kind, subject) for kind in kinds for subject in subjects]
    not_settled = [name for name in hash_names if name not in live or not live[name].is_settled]
    if not not_settled:
        return {}
    stored = stored_hashes.breakdowns(not_settled)
    return {name: stored[name] for name in not_settled}


def _merged(
    in_redis: Mapping[counters.Name, live_counters.Hash],
    stored: Mapping[counters.Name, Mapping[str, int]],
) -> dict[counters.Name, Counter[str]]:
    """Returns the counts of the stored hashes, merged with what Redis has of them."""
    counts = {}
    is_partition_sound = cache(is_sound)
    for name, stored_counts in stored.items():
        _, subject = name
        in_sql = Counter(stored_counts)
        live = in_redis.get(name, live_counters.Hash({}))
        # An unsettled hash does not include SQL's counts, so both are added up. But if Redis was
        # restored from an older snapshot, it may include them: then the higher ones are taken (|).
        if live.is_settled or not in_sql or not is_partition_sound(keys.tag(subject)):
            counts[name] = Counter(live.counts) | in_sql
        else:
            counts[name] = Counter(live.counts) + in_sql
    return counts
