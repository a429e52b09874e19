"""The different visitors of objects and models in a period of whole days of TIME_ZONE.

Each is the union of a sketch for each day: those that SQL has, and for the last days Redis's.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.counted import counts_days
from readtrack.numbers.sql import day_visitors
from readtrack.numbers.sql.day_visitors import AskedDays, StoredDay
from readtrack.store import keys, scripts, uniques
from readtrack.store.circuit import fail_open
from readtrack.store.scripts import Call
from readtrack.store.uniques import Union, UniquesError
from readtrack.subjects import label_in, subject_column

SUBJECTS_AT_ONCE = 100  # whose sketches are in memory at the same time


class Days(NamedTuple):
    """A period of whole days of TIME_ZONE."""

    first: date
    last: date

    @classmethod
    def between(cls, since: datetime, until: datetime) -> "Days":
        """Returns the days that the period touches. `until` is exclusive."""
        zone = get_default_timezone()
        first = local_time.day_of(since, zone=zone)
        return cls(first, local_time.last_day_of(since, until, zone=zone))

    @classmethod
    def of_hours(cls, hours: range) -> "Days":
        """Returns the days to which the hours (since 1970) are counted."""
        first = buckets.local_day(hours.start)
        return cls(first, max(first, buckets.local_day(hours.stop - 1)))

    @property
    def hours(self) -> range:
        """Returns the hours (since 1970) that begin in the period."""
        first_hour = local_time.first_hour_of(self.first)
        return range(first_hour, local_time.first_hour_of(self.last + buckets.DAY))

    @property
    def has_today(self) -> bool:
        """Returns True if today is one of the days."""
        return self.first <= local_time.today() <= self.last

    @property
    def in_redis(self) -> list[date]:
        """Returns the days of which Redis has sketches."""
        now = buckets.now()
        days = buckets.local_days(now - keys.day_visitors.ttl * timedelta(seconds=1), now)
        return [day for day in days if self.first <= day <= self.last]

    def keys_of(self, subject: str) -> list[str]:
        """Returns the keys of Redis's sketches of the subject in the period."""
        return [keys.day_visitors(buckets.day_bucket(day), subject) for day in self.in_redis]


def days_of(*, days: int | None, since: date | None, until: date | None) -> Days:
    """Returns the last `days`, today included, or the days from `since` to `until`.

    `since` and `until` are days or times; `until` is exclusive, and defaults to now. Raises
    ValueError for anything else.
    """
    now = buckets.now()
    if since is not None and days is None:
        end = now if until is None else local_time.moment(until)
        return Days.between(local_time.moment(since), end)
    if days is not None and since is None and until is None and days >= 1:
        today = local_time.today()
        return Days(today - (days - 1) * buckets.DAY, today)
    raise ValueError("A period is days=7 (1 or more), or since=… with or without until=….")


def check(labels: Collection[str]) -> None:
    """Raises UniquesError if the visitors of a day are not counted for a model."""
    for label in labels:
        if not counts_days(label):
            raise UniquesError(
                f"Visitors of a period are not counted for {label}: that needs"
                " history (NUMBERS), and another strategy than 'none'."
            )


def visitors_in(subjects: Sequence[str], days: Days) -> dict[str, int]:
    """Returns how many different visitors each subject had on these days.

    Takes a query and a round trip for SUBJECTS_AT_ONCE subjects. While Redis is down, the number is
    that of the day with the most visitors, because Redis unites the days. Raises UniquesError if
    the visitors of days are not counted.
    """
    check({label_in(subject) for subject in subjects})
    numbers: dict[str, int] = {}
    for portion in scripts.sliced(subjects, SUBJECTS_AT_ONCE):
        rows = by_subject([*map(subject_column, portion)], days)
        calls: dict[str, Call[Union]] = {}
        for subject in portion:
            calls[subject] = union_of(subject, rows[subject_column(subject)], days)
        fail_open(scripts.run_all, [], *calls.values())
        for subject, call in calls.items():
            if call.has_result:
                numbers[subject] = call.result.visitors
            else:
                numbers[subject] = most(rows[subject_column(subject)])
    return numbers


def by_subject(columns: Collection[str], days: Days) -> defaultdict[str, list[StoredDay]]:
    """Returns the stored days in the period by subject, as columns have it. Makes one query."""
    grouped: defaultdict[str, list[StoredDay]] = defaultdict(list)
    for row in day_visitors.stored(AskedDays(columns, *days)):
        grouped[row.subject].append(row)
    return grouped


def most(rows: Sequence[StoredDay]) -> int:
    """Returns the number of visitors of the day, or block of days, with the most; 0 without
    days.
    """
    return max((row.visitors for row in rows), default=0)


def union_of(subject: str, rows: Sequence[StoredDay], days: Days) -> Call[Union]:
    """Returns the call that counts the visitors of a subject, with those that only Redis has."""
    sketches = [row.sketch for row in rows]
    return uniques.union(sketches, tag=keys.tag(subject), live=days.keys_of(subject))


def visitors_of_models(labels: Sequence[str], days: Days) -> int:
    """Returns how many different visitors all objects of the models had on these days.

    It is as of the last flush. Raises UniquesError if the visitors of days are not counted, and
    redis.RedisError.
    """
    check(labels)
    rows = day_visitors.stored(AskedDays(labels, *days))
    return _united([row.sketch for row in rows])


def visitors_of_all(subjects: Sequence[str], days: Days) -> int:
    """Returns how many different visitors the subjects had in all on these days.

    Raises UniquesError if the visitors of days are not counted, and redis.RedisError.
    """
    check({label_in(subject) for subject in subjects})
    columns = [*map(subject_column, subjects)]
    rows = day_visitors.stored(AskedDays(columns, *days))
    calls: list[Call[Sequence[bytes | None]]] = []
    for day in days.in_redis:
        for portion in scripts.parted(subjects):
            names = [keys.day_visitors(buckets.day_bucket(day), subject) for subject in portion]
            calls.append(Call("MGET", names))
    sketches = [row.sketch for row in rows]
    for answer in scripts.run_all(*calls):
        sketches += filter(None, answer)
    return _united(sketches)


def _united(sketches: Sequence[bytes]) -> int:
    """Returns how many different visitors the sketches have together."""
    tag = keys.tags()[0]
    # In portions, because a script blocks the server, and Lua can unpack some 8,000 values.
    calls = [
        uniques.union(portion, tag=tag, wants_sketch=True) for portion in scripts.sliced(sketches)
    ]
    scripts.run_all(*calls)
    if len(calls) == 1:
        return calls[0].result.visitors
    return scripts.run(uniques.union([call.result.sketch for call in calls], tag=tag)).visitors
