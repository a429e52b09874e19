"""The views of each model by the hour, as Redis counts them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from readtrack import buckets
from readtrack.store import counters, keys, scripts
from readtrack.store.counters import Total

HOURS = 48  # how long Redis keeps them
SPARE = 2  # of those that an import leaves alone, for they may end before the next flush

Hours = Mapping[int, Total]  # what Redis holds of one model, by hours since 1970


def first_hour(at: datetime) -> int:
    """The hour from which on an import adds to Redis; what is older, it adds to history itself."""
    return buckets.hour_index(at) - HOURS + 1 + SPARE


def hour_calls(labels: Iterable[str], hours: Sequence[int]) -> list[scripts.Call[dict[str, Total]]]:
    names = [hour_name(label, hour) for label in labels for hour in hours]
    return [counters.model_hours(some) for some in scripts.sliced(names)]


def by_label(answers: Iterable[dict[str, Total]]) -> defaultdict[str, dict[int, Total]]:
    found: defaultdict[str, dict[int, Total]] = defaultdict(dict)
    for answer in answers:
        for name, total in answer.items():
            label, hour = parse_hour_name(name)
            found[label][hour] = total
    return found


def hour_name(label: str, hour: int) -> str:
    return keys.member(keys.hourly(buckets.hour_bucket(buckets.hour_start(hour))), label)


def parse_hour_name(name: str) -> tuple[str, int]:
    family, label = keys.split_member(name)
    return label, buckets.bucket_index(family.rpartition(":")[2])
