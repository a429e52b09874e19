"""The views of each model by the hour; those of the whole site are their sum.

Redis counts them beside the totals and by the same rules. An hour that begins anew there is marked, settled with what
history has of it, written only once it has that base, and lifted where it is behind. History's rows are absolute, so
an hour's views are the difference to the row before, and a row that rises raises all later ones.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction

from readtrack import buckets, databases, history, keys, lineage, subjects
from readtrack.history import Sums
from readtrack.models import History
from readtrack.store import counters, scripts
from readtrack.store.connection import fail_open
from readtrack.store.counters import Total

HOURS = 48  # how long Redis keeps them
SPARE = 2  # of those that an import leaves alone, for they may end before the next flush
FOREVER = 2**31 - 1  # an hour that is never reached
NOTHING = Total(0)

Hours = Mapping[int, Total]  # what Redis holds of one model, by hours since 1970


def bases(names: Sequence[str]) -> dict[str, int]:
    """What history has of those hours, by their names in `views:unbased`."""
    wanted = {_parsed(name): name for name in names}
    if not wanted:
        return {}
    hours = [hour for _, hour in wanted]
    stored = history.sums({label for label, _ in wanted}, since=min(hours), until=max(hours) + 1)
    found = {label: rows.by_hour() for label, rows in stored.items()}
    return {name: found[label].get(hour, 0) for (label, hour), name in wanted.items()}


def keep(*, at: datetime) -> int | None:
    """Brings history up to the hour of `at`, and Redis up to history; gives how many of its hours were behind.

    None where SQL cannot follow this Redis yet: settle, then try again. Raises redis.RedisError or django.db.Error.
    """
    present = buckets.hour_number(at)
    since = present - HOURS + 1
    calls = _calls(subjects.tracked_labels(), range(since, present + 1))
    *answers, epoch = scripts.run_all(*calls, counters.epoch(), patient=True)
    live = _by_label(answers)
    connection = databases.of(History)

    def write() -> dict[str, int] | None:
        # Whoever writes sums takes turns: rows are computed out of the rows before them.
        with transaction.atomic(using=connection.alias):
            lineage.hold()
            if not lineage.follow(epoch.current, previous=epoch.previous):
                return None
            behind: dict[str, int] = {}
            stored = history.sums(live, since=since, until=FOREVER)
            rows = [row for label in live for row in _raised(label, live[label], stored[label], behind=behind)]
            databases.upsert(History, ("subject", "hour"), ("views", "visitors"), rows=rows)
        return behind

    behind = databases.retried(connection, write)
    if behind is None:
        return None
    lifts = [counters.lift(dict(some)) for some in scripts.sliced([*behind.items()])]
    lifted: list[int] = scripts.run_all(*lifts, patient=True)
    return sum(lifted)


def _raised(label: str, live: Hours, stored: Sums, *, behind: dict[str, int]) -> list[tuple[str, int, int, int]]:
    """The rows that are to rise; notes what history has of hours that Redis has less of."""
    known = stored.by_hour()
    total = row = stored.before
    rows = []
    for hour in sorted({*known, *live}):
        count, least = live.get(hour, NOTHING), known.get(hour, 0)
        views = max(least, count.views) if count.is_based else least
        total, row = total + views, row + least
        if total > row and (views or hour in known):
            rows.append((label, hour, total, 0))
        if hour in live and count.is_based and count.views < least:
            behind[_name(label, hour)] = least
    return rows


def views(labels: Sequence[str], *, since: int, until: int) -> Counter[int]:
    """Views of those models together by the hour; with Redis gone, what history has."""
    # SQL comes first: a base that is settled and written in between would be seen twice.
    stored = history.sums(labels, since=since, until=until)
    calls = _calls(labels, range(max(since, until - HOURS), until))
    live = _by_label(fail_open(scripts.run_all, [], *calls))
    found: Counter[int] = Counter()
    for label, rows in stored.items():
        known = rows.by_hour()
        found.update(known)
        for hour, count in live[label].items():
            found[hour] += max(0, count.views - known.get(hour, 0)) if count.is_based else count.views
    return found


def first(at: datetime) -> int:
    """The hour from which on an import adds to Redis; what is older, it adds to history itself."""
    return buckets.hour_number(at) - HOURS + 1 + SPARE


def _calls(labels: Iterable[str], hours: Sequence[int]) -> list[scripts.Call[dict[str, Total]]]:
    names = [_name(label, hour) for label in labels for hour in hours]
    return [counters.sums(some) for some in scripts.sliced(names)]


def _by_label(answers: Iterable[dict[str, Total]]) -> defaultdict[str, dict[int, Total]]:
    found: defaultdict[str, dict[int, Total]] = defaultdict(dict)
    for answer in answers:
        for name, total in answer.items():
            label, hour = _parsed(name)
            found[label][hour] = total
    return found


def _name(label: str, hour: int) -> str:
    return keys.member(keys.hourly(buckets.hour(buckets.hour_start(hour))), label)


def _parsed(name: str) -> tuple[str, int]:
    family, label = keys.split_member(name)
    return label, buckets.hour_named(family.rpartition(":")[2])
