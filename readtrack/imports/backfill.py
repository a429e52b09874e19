"""Charts of the past: adds the views of a batch to the history of their subjects and of their models.

A history row holds the total at the end of its hour, so a view of the past raises the row of its hour and all later
rows. No view is in a chart twice:

- Subjects: a row that the flush writes after the batch was added in Redis holds the live total, and so the batch.
  Such rows are told by their value: all rows from before are below the total right after the batch was added.
- Models: Redis counts the views of their last hours, the batch included, and the flush writes those rows. Only
  earlier hours are filled here.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import accumulate

from readtrack.conf import conf
from readtrack.sql import gains
from readtrack.sql.gains import Gain
from readtrack.store.imports import Batch, first_hour
from readtrack.subjects import subject_column

FOREVER = 2**31 - 1  # an hour (since 1970) that no row reaches
NO_LIMIT = 2**63 - 1  # views that no row reaches


def part(batch: Batch, *, at: datetime) -> str:
    """Returns as JSON what `fill` needs to know of the batch; empty if no history is kept."""
    if not conf.HISTORY:
        return ""
    hours = [[*key, count] for key, count in batch.hours.items()]
    return json.dumps({"subjects": list(batch.views), "hours": hours, "first_live_hour": first_hour(at)})


def fill(part: str, totals: Sequence[int]) -> None:
    """Raises the history by the part. `totals` are those of its subjects right after the batch was added.

    Call it once, in the transaction that confirms the batch.
    """
    found = json.loads(part)
    limits = dict(zip(found["subjects"], totals, strict=True))
    gained: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for subject, hour, count in found["hours"]:
        gained[subject_column(subject), limits[subject]][hour] += count
        if hour < found["first_live_hour"]:
            gained[subject.partition(":")[0], NO_LIMIT][hour] += count
    if gained:
        gains.add([gain for key, counts in gained.items() for gain in _gains(*key, counts)])


def _gains(subject: str, limit: int, counts: Mapping[int, int]) -> Iterator[Gain]:
    """Yields what the rows gain by views in these hours: each row those of its own hour and of all earlier ones."""
    hours = sorted(counts)
    sums = accumulate(counts[hour] for hour in hours)
    for views, since, until in zip(sums, hours, [*hours[1:], FOREVER], strict=True):
        yield Gain(views, subject, since, until, limit)
