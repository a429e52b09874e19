"""The keys of a view: those of the core, and those that the installed parts need.

Hot path: all but the subject and the visitor is computed once for each model and minute.
"""

from datetime import datetime, timezone
from typing import NamedTuple

from readtrack import buckets
from readtrack.conf import cached_setting
from readtrack.store import fragments, keys, uniques
from readtrack.store.keys import Key


class ViewKeys(NamedTuple):
    """The keys of a model's views in a minute. The subject or visitor is still missing at the end.

    The keys `unsettled`, `bucket`, `changed`, `minute_visitors` and those of `of_model` are
    complete.
    """

    rate: str
    unsettled: str
    bucket: str
    changed: str
    total: str
    minute_visitors: str
    hll: str  # the total again where another strategy counts visitors
    window: str
    of_seen: tuple[str, ...]  # what the parts need of a view whose page was seen
    of_subject: tuple[str, ...]  # what the parts need; the total again for what they do not need
    of_model: tuple[str, ...]


# All hits of a second have the same object as their time, by which they are found soonest.
@cached_setting("INSTALLED_APPS", "TIME_ZONE", maxsize=1024)
def at_time(at: datetime, prefix: str, tag: str, label: str) -> ViewKeys:
    """Returns the keys of a model's views in the minute of `at`, in the tag's partition."""
    return of_minute(int(at.timestamp()) // keys.MINUTE, prefix, tag, label)


@cached_setting("INSTALLED_APPS", "TIME_ZONE", maxsize=1024)
def of_minute(minute: int, prefix: str, tag: str, label: str) -> ViewKeys:
    """Returns the keys of a model's views in a minute (since 1970) in the tag's partition."""
    at = datetime.fromtimestamp(minute * keys.MINUTE, timezone.utc)
    pieces = {
        "tag": tag,
        "hour": buckets.hour_bucket(at),
        "minute": buckets.minute_bucket(at),
        "date": buckets.local_day_bucket(at),
        "model": label,
        "subject": "",
        "visitor": "",
    }

    def start(row: Key) -> str:
        return prefix + row.tagged.format_map(pieces)

    total = start(keys.total)
    of_seen = []
    of_subject = []
    of_model = []
    for counting in fragments.counting_parts():
        of_seen += [start(row) for row in counting.needs.keys_if_seen.values()]
        rows = counting.needs.keys
        for name in counting.keys.of_subject:
            if counting.needs.needs(name, label):
                of_subject.append(start(rows[name]))
            else:
                of_subject.append(total)
        of_model += [start(rows[name]) for name in counting.keys.of_model]
    hll = total
    if uniques.counts_by_hll(label):
        hll = start(keys.hll)
    return ViewKeys(
        rate=start(keys.rate),
        unsettled=start(keys.unsettled),
        bucket=start(keys.trending_bucket),
        changed=start(keys.changed),
        total=total,
        minute_visitors=start(keys.minute_visitors),
        hll=hll,
        window=f"{prefix}{keys.window.family}{tag}:",
        of_seen=tuple(of_seen),
        of_subject=tuple(of_subject),
        of_model=tuple(of_model),
    )
