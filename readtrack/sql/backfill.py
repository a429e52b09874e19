"""Charts of the past: adds the views of a batch to the history of their subjects and of their models.

A view of the past raises the row of its hour and all later rows. No view is in a chart twice: rows that the flush
writes after the batch was added in Redis are told by their value, and hours of models that Redis counts are left out.
"""

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

Gain = tuple[int, str, int, int, int]  # views to add to a subject's rows from one hour until another, below a limit


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
    """Raises the history by the part. `limits` are the totals of its subjects right after the batch was added.

    A row that is inserted begins with the counts of the row before it. Call it once, in the transaction that confirms
    the batch.
    """
    found = json.loads(part)
    gained: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for subject, hour, count in found["hours"] if conf.HISTORY else ():
        if subject not in limits:  # its partition lost the batch
            continue
        gained[subject_column(subject), limits[subject]][hour] += count
        if hour < found["first_live_hour"]:
            gained[subject.partition(":")[0] + keys.tag(subject), NO_LIMIT][hour] += count
    gains: list[Gain] = []
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
    connection = databases.of(History)
    with connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            cursor.executemany(_statement("insert_hours_portable"), [gain[1:3] * 3 for gain in gains])
            cursor.executemany(_statement("raise_hours_portable"), gains)
            return
        views, subjects, *others = zip(*gains, strict=True)
        columns = [databases.array(views), list(subjects), *map(databases.array, others)]
        cursor.execute(_statement("insert_hours"), columns)
        cursor.execute(_statement("raise_hours"), [*columns, list(dict.fromkeys(subjects))])


def _statement(name: str) -> str:
    return databases.STATEMENTS[name].format_map(databases.words(History))
