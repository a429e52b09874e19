"""Renewing what is usual: once an hour a full flush computes all of it anew."""

from datetime import datetime
from functools import partial

from readtrack import buckets
from readtrack.numbers.sql import peers, usual, usual_week
from readtrack.numbers.sql.usual import Bands
from readtrack.sql.faults import Faults
from readtrack.subjects import counted_models, label_of


def renew(*, at: datetime, faults: Faults) -> None:
    """Computes what is usual, unless that was done in this hour.

    What belongs to a model or a section that is gone is deleted by that. A model that cannot be
    read has nothing usual.
    """
    hour = buckets.hour_index(at)
    stored_hour = usual.stored_hour()
    if stored_hour == hour:
        return
    first_hour_of = usual_week.first_hours(map(label_of, counted_models()))
    bands: dict[str, Bands] = {}
    for model in counted_models():
        since = first_hour_of.get(label_of(model))
        if since is None:
            continue
        compute = partial(peers.bands_by_age, model, since=since, at=at)
        nothing: dict[str, Bands] = {}
        bands.update(faults.attempt(label_of(model), compute, nothing))
    weeks = usual_week.weeks_of(first_hour_of, at=at)
    bands.update(weeks.bands)
    if bands or stored_hour is not None:
        usual.replace(bands, weeks.past, hour=hour)
