"""How many have read each category, by the hour. The number falls at each publication: the latest one counts."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from readtrack import buckets, subjects
from readtrack.models import Readership
from readtrack.sql import databases
from readtrack.sql.reader_history import newest, stored_rows
from readtrack.store import read_state
from readtrack.store.scripts import SLICE
from readtrack.unread import categories


def keep(*, at: datetime) -> int:
    """Stores, for the hour of `at`, the numbers that changed; gives how many. Raises redis.RedisError."""
    hour = buckets.hour_number(at)
    # By the site's own rows, not by SCAN: nobody has read a category whose key a publication took away.
    return sum(_keep(tokens, hour=hour) for model in categories.read_state_models() for tokens in _tokens(model))


def _tokens(model: Any) -> Iterator[list[str]]:
    rows = model._base_manager.using(databases.of(model).alias).order_by("pk").values_list("pk", flat=True)
    page = list(rows[:SLICE])
    while page:
        yield [subjects.token_of(model, pk) for pk in page]
        page = list(rows.filter(pk__gt=page[-1])[:SLICE])


def _keep(tokens: Sequence[str], *, hour: int) -> int:
    counts = read_state.count_readers(tokens, patient=True)
    found = {subjects.column(token): count for token, count in counts.items()}
    stored = newest(list(found))
    changed = [
        Readership(subject=subject, hour=hour, readers=count)
        for subject, count in found.items()
        if count != stored.get(subject, 0)
    ]
    features = databases.of(Readership).features
    stored_rows().bulk_create(
        changed,
        update_conflicts=True,
        update_fields=["readers"],
        unique_fields=["subject", "hour"] if features.supports_update_conflicts_with_target else None,
    )
    return len(changed)
