"""Charts of the past: adds the views of a batch to the history of their subjects and of their models."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from itertools import accumulate

from readtrack import buckets
from readtrack.conf import conf
from readtrack.models import History
from readtrack.sql import databases
from readtrack.sql.runs import lock_epoch
from readtrack.store import keys
from readtrack.store.imports import Batch, first_hour
from readtrack.subjects import subject_column

FOREVER = 2**31 - 1  # an hour (since 1970) that no row reaches
NO_LIMIT = 2**63 - 1  # views that no row reaches


def part(batch: Batch, *, at: datetime) -> str:
    """Returns the batch as JSON, for `fill` and `batch_of`; empty if neither history nor a partition may need it."""
    if not conf.HISTORY and conf.PARTITIONS == 1:
        return ""
    hours = [[*key, count] for key, count in batch.hours.items()]
    return json.dumps({"views": batch.views, "hours": hours, "first_live_hour": first_hour(at)})


def batch_of(part: str) -> tuple[Batch, datetime]:
    """Returns the batch of a part, without its visitors, and a time for which Redis keeps the same hours."""
    at = buckets.now()
    if not part:
        return Batch(), at
    found = json.loads(part)
    hours = Counter({(subject, hour): count for subject, hour, count in found["hours"]})
    return Batch(Counter(found["views"]), hours), at - (first_hour(at) - found["first_live_hour"]) * buckets.HOUR


def fill(part: str, limits: Mapping[str, int]) -> None:
    """Raises the history by the part, once, in the transaction that confirms it. `limits` are its subjects' totals."""
    found = json.loads(part)
    gained: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for subject, hour, count in found["hours"] if conf.HISTORY else ():
        if subject not in limits:  # its partition lost the batch
            continue
        gained[subject_column(subject), limits[subject]][hour] += count
        if hour < found["first_live_hour"]:
            gained[subject.partition(":")[0] + keys.tag(subject), NO_LIMIT][hour] += count
    # Views to add to a subject's rows from one hour until another, below a limit.
    gains: list[tuple[int, str, int, int, int]] = []
    for (subject, limit), counts in sorted(gained.items()):
        hours = sorted(counts)
        # Each row gains the views of its own hour and of all earlier ones.
        sums = accumulate(counts[hour] for hour in hours)
        steps = zip(sums, hours, [*hours[1:], FOREVER], strict=True)
        gains += [(views, subject, since, until, limit) for views, since, until in steps]
    if not gains:
        return
    # Other writers of sums wait, because this would neither see nor raise a row that they insert meanwhile.
    lock_epoch()
    words = databases.words(History)
    with databases.of(History).cursor() as cursor:
        cursor.executemany(databases.STATEMENTS["insert_hours"].format_map(words), [gain[1:3] * 3 for gain in gains])
        cursor.executemany(databases.STATEMENTS["raise_hours"].format_map(words), gains)
