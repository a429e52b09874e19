"""When the history of models, and of what is counted by value, began."""

from collections.abc import Sequence

from django.db.models import Model

from readtrack.numbers.models import BreakdownHistory, History
from readtrack.subjects import label_of

LONG_AGO = 300_000  # the hour since 1970, before all periods


def begin_history(*models: type[Model], kinds: Sequence[str] = ()) -> None:
    """Makes history begin long ago, so that all periods before are known.

    `kinds` are those of the hashes that were counted by then, such as `views:device`.
    """
    for model in models:
        label = label_of(model)
        History.objects.get_or_create(
            subject=label, hour=LONG_AGO, defaults={"views": 0, "visitors": 0}
        )
        for kind in kinds:
            BreakdownHistory.objects.create(
                subject=label, kind=kind, hour=LONG_AGO, field="old", count=1
            )
