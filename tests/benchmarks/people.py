"""Days of visitors of a busy site, as flushes and archives would have stored them."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

from django.db import connection

from readtrack import buckets
from readtrack.numbers.flush import day_visitors
from readtrack.numbers.models import DayVisitors
from readtrack.store.connection import connect

PER_DAY = 12_000  # visitors of a day of the first name; the one after n others has PER_DAY / n
PEOPLE = 300_000
SKETCHES = 5  # different sketches of each name


def fill(names: Sequence[str], *, days: int) -> int:
    """Stores the visitors of each name on each day, and their blocks. Returns the number of rows."""
    chance = Random(1)
    redis: Any = connect()
    now = buckets.now()
    today = buckets.local_day(buckets.hour_index(now))
    rows = []
    for number, name in enumerate(names):
        sketches = []
        for _ in range(SKETCHES):
            people = [f"v{chance.randrange(PEOPLE)}" for _ in range(PER_DAY // max(1, number))]
            redis.delete("sketch")
            redis.pfadd("sketch", *people)
            sketches.append((redis.pfcount("sketch"), redis.get("sketch")))
        for age in range(days):
            visitors, sketch = sketches[age % SKETCHES]
            day = today - timedelta(days=age)
            rows.append(DayVisitors(subject=name, day=day, visitors=visitors, sketch=sketch))
    redis.delete("sketch")
    DayVisitors.objects.bulk_create(rows)
    for age in reversed(range(days)):  # as the archive of each day has
        day_visitors.roll_up(at=now - timedelta(days=age))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE readtrack_numbers_dayvisitors")
    return DayVisitors.objects.count()
