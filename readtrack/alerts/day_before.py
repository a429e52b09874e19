"""The views of stories in the hours of the day before, by which it is known what is usual for each.

The minutes of Redis reach back one hour, and its hours as far as Redis has been watched. History
reaches back further: a site whose Redis lost its data an hour ago, or that moved or imported its
counts, knows what its stories have in an hour all the same. So of each hour the larger number of
the two is taken. Without it, a story that is always read would look as if nothing were usual for
it. The hours of a story begin with its publication, and with the first whole hour of which its
model has history, or of which Redis has been watched, whichever is earlier.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Model

from readtrack import buckets
from readtrack.alerts import minutes
from readtrack.numbers.published import published_at
from readtrack.numbers.sql import history
from readtrack.store import keys
from readtrack.subjects import label_of, subject_column


def by_hour(
    objs: Mapping[str, Model], *, watched_since: datetime, at: datetime
) -> dict[str, dict[int, int]]:
    """Returns the views of the objects in the whole hours of the day before that are known, by
    subject and hour (since 1970).

    Makes a query, and one for each model, only while Redis has been watched for less than a day.
    Raises redis.RedisError.
    """
    # SQL is read before Redis: what is written in between would be missing in both.
    hours = minutes.hours_before(at)
    stored: Mapping[str, Mapping[int, int]] = {}
    counted_since: Mapping[str, datetime] = {}
    if watched_since > buckets.hour_start(hours.start) and history.is_kept():
        stored = _of_history([*objs], hours)
        counted_since = _counted_since({label_of(obj.__class__) for obj in objs.values()})
    views_by_subject = {}
    for subject, views in minutes.by_hour([*objs], at=at).items():
        obj = objs[subject]
        since = min(watched_since, counted_since.get(label_of(obj.__class__), watched_since))
        published = published_at(obj)
        if published is not None:
            since = max(since, published)
        views_of_history = stored.get(subject, {})
        views_by_subject[subject] = {
            hour: max(number, views_of_history.get(hour, 0))
            for hour, number in views.items()
            if buckets.hour_start(hour) >= since
        }
    return views_by_subject


def _of_history(subjects: list[str], hours: range) -> dict[str, dict[int, int]]:
    """Returns the views of each subject in those of the hours in which history has any."""
    columns = {subject: subject_column(subject) for subject in subjects}
    sums = history.sums_between([*columns.values()], [*hours, hours.stop])
    return {subject: sums[column].by_hour() for subject, column in columns.items()}


def _counted_since(labels: set[str]) -> dict[str, datetime]:
    """Returns the start of the first whole hour of which each model has history."""
    starts = {}
    for label in labels:
        columns = [f"{label}{tag}" for tag in keys.past_tags()]
        for hour in history.first_hour(columns):
            starts[label] = buckets.hour_start(hour + 1)
    return starts
