"""The views of peers: what the last objects of a model, or of a section, had at the same age.

The peers at an age are the last PEERS objects that are at least that old. Their views are counted
from their publication on, so that previews, and views of an earlier publication, are left out. They
are counted until that age and until the one before it: an object between the two is younger than
all of these peers, so it is compared with others only.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import DateTimeField, ForeignKey, Model
from django.utils import timezone

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.published import published_field, time_published
from readtrack.numbers.sql import thinning
from readtrack.numbers.sql.gained import BOUNDS_OF_AGE, NUMBERS_OF_AGE, WINDOWS, name_of_gains
from readtrack.numbers.sql.usual import (
    AGES,
    START,
    Band,
    Bands,
    absolute_views,
    age_before,
    band_of,
    name_of,
)
from readtrack.sql import databases
from readtrack.subjects import label_of, news_links, subject_column, subject_of_row

PEERS = 100  # objects that one is compared with, at most
FEWEST = 10  # and at least
# Rows of a model that are read for one age, at most. Sections that have fewer than FEWEST of these
# are too small for a usual of their own.
ROWS = 3_000
SECTIONS = 50  # of a model that have a usual of their own, at most: those with the most peers
HALF_HOUR = timedelta(minutes=30)


class Peer(NamedTuple):
    """An object: its subject as columns have it, its section's subject, and its publication."""

    subject: str
    section: str  # "" without one
    published: datetime

    @property
    def first_hour(self) -> int:
        """The hour (since 1970) of its publication."""
        return buckets.hour_index(self.published)

    def hour_at(self, age: int) -> int:
        """Returns the hour (since 1970) at whose start it had that age (hours), rounded."""
        return buckets.hour_index(self.published + age * buckets.HOUR + HALF_HOUR)


Peers = Mapping[int, Sequence[Peer]]  # by age
# What `_hours_of_bounds` returns, by the hour of publication and the age.
HoursOfBounds = Mapping[tuple[int, int], Mapping[int, Mapping[int, float]]]


def section_field(model: type[Model]) -> Any:
    """Returns the foreign key to the section of the model's objects; None without one."""
    for link in news_links(model):
        if isinstance(link, ForeignKey) and link.target_field.primary_key:
            return link
    return None


def section_of(obj: Model) -> str:
    """Returns the subject of the object's section; "" without one. Makes no query."""
    field = section_field(obj.__class__)
    if field is None or field.attname in obj.get_deferred_fields():
        return ""
    return section_subject(field, getattr(obj, field.attname))


def section_subject(field: Any, key: Any) -> str:
    return "" if key is None else subject_of_row(field.related_model, key)


def bands_by_age(model: type[Model], *, since: int, at: datetime) -> dict[str, Bands]:
    """Returns the bands of the model and of its sections, by name.

    `since` is the first hour of the model's history (since 1970): objects that were published
    earlier are no peers, because their first views are not known. Nothing is returned for a model
    without a time of publication.
    """
    if published_field(model) is None:
        return {}
    candidates = dict(_candidates(model, since=buckets.hour_start(since), at=at))
    label = label_of(model)
    peers = {"": _last(candidates)}
    for section in _largest_sections(candidates):
        of_section = {
            age: [peer for peer in rows if peer.section == section]
            for age, rows in candidates.items()
        }
        peers[section] = _last(of_section)
    return _bands(label, peers, kept_since=thinning.first_whole_hour(at=at))


def _candidates(
    model: type[Model], *, since: datetime, at: datetime
) -> Iterator[tuple[int, Sequence[Peer]]]:
    """Yields the last objects at each age, newest first.

    The rows that were read for an age serve for the next one, too, as long as half of ROWS are old
    enough. Without an index on the field, each query reads the whole table.
    """
    rows: Sequence[Peer] = []
    has_all = False
    for age in AGES:
        # Half an hour more, so that the rounded hour is over.
        before = at - age * buckets.HOUR - HALF_HOUR
        if before < since:
            return
        rows = [peer for peer in rows if peer.published <= before]
        if not has_all and len(rows) <= ROWS // 2:
            rows = _published(model, since=since, before=before)
            has_all = len(rows) < ROWS
        yield age, rows


def _published(model: type[Model], *, since: datetime, before: datetime) -> list[Peer]:
    """Returns the last ROWS objects that were published in that time, newest first.

    They are those of the default manager: rows that it hides are not published.
    """
    field = published_field(model)
    section = section_field(model)
    in_time = {
        f"{field.name}__gte": _value(field, since),
        f"{field.name}__lte": _value(field, before),
    }
    objects = model._default_manager.using(databases.of(model).alias)
    in_order = objects.filter(**in_time).order_by(f"-{field.name}", "-pk")
    columns = ["pk", field.attname]
    if section is not None:
        columns.append(section.attname)
    peers = []
    for pk, value, *keys in in_order.values_list(*columns)[:ROWS]:
        published = time_published(value)
        if published is None or published < since:
            continue
        subject = subject_column(subject_of_row(model, pk))
        sections = [section_subject(section, key) for key in keys]
        peers.append(Peer(subject, "".join(sections), published))
    return peers


def _value(field: Any, moment: datetime) -> Any:
    """Returns the moment as the field has it: a date, or a naive time on a site without USE_TZ."""
    local = timezone.localtime(moment, timezone.get_default_timezone())
    if not isinstance(field, DateTimeField):
        return local.date()
    return local if settings.USE_TZ else local.replace(tzinfo=None)


def _largest_sections(candidates: Peers) -> list[str]:
    """Returns the sections with the most candidates at all ages together."""
    numbers = Counter(peer.section for rows in candidates.values() for peer in rows)
    del numbers[""]
    return [section for section, number in numbers.most_common(SECTIONS) if number >= FEWEST]


def _last(candidates: Peers) -> dict[int, Sequence[Peer]]:
    """Returns the last PEERS candidates at each age at which there are enough."""
    return {age: rows[:PEERS] for age, rows in candidates.items() if len(rows) >= FEWEST}


def _bands(label: str, peers: Mapping[str, Peers], *, kept_since: int) -> dict[str, Bands]:
    """Returns the bands by name. `peers` are those of the model, and of its sections by subject.

    `kept_since` is the first hour from which on history has hours.
    """
    weights = _weights_of_peers(peers, kept_since=kept_since)
    hours_of_bounds = _hours_of_bounds_of_peers(peers, kept_since=kept_since)
    absolute = absolute_views(_asked(peers, weights, hours_of_bounds))
    bands: defaultdict[str, dict[int, Band]] = defaultdict(dict)
    for section, by_age in peers.items():
        for age, rows in by_age.items():
            for slot, counted_until in _ages_by_slot(age).items():
                views = [*_views(rows, counted_until, weights=weights, absolute=absolute)]
                if len(views) >= FEWEST:
                    bands[name_of(label, section)][slot] = band_of(views)
            gains_by_window = _gains(
                rows,
                age,
                hours_of_bounds=hours_of_bounds,
                kept_since=kept_since,
                absolute=absolute,
            )
            for number, gains in gains_by_window.items():
                if len(gains) >= FEWEST:
                    bands[name_of_gains(label, section)][number] = band_of(gains)
    return dict(bands)


def _ages_by_slot(age: int) -> dict[int, int]:
    """Returns the slots of bands that the peers of an age make, with the age until which their
    views are counted.
    """
    slots = {age: age}
    if age_before(age):
        slots[START + age] = age_before(age)
    return slots


def _weights_of_peers(
    peers: Mapping[str, Peers], *, kept_since: int
) -> dict[tuple[str, int], Mapping[int, float]]:
    """Returns the `_weights` of the hours at which peers had the ages, by subject and hour."""
    weights: dict[tuple[str, int], Mapping[int, float]] = {}
    for by_age in peers.values():
        for age, rows in by_age.items():
            for counted_until in _ages_by_slot(age).values():
                for peer in rows:
                    hour = peer.hour_at(counted_until)
                    shares = _weights(hour, age=counted_until, kept_since=kept_since)
                    weights[peer.subject, hour] = shares
    return weights


def _hours_of_bounds_of_peers(peers: Mapping[str, Peers], *, kept_since: int) -> HoursOfBounds:
    """Returns the `_hours_of_bounds` of all peers: once for those that were published in the same
    hour, and for those of a section that are peers of the model, too.
    """
    hours_of_bounds: dict[tuple[int, int], Mapping[int, Mapping[int, float]]] = {}
    for by_age in peers.values():
        for age, rows in by_age.items():
            for first_hour in {peer.first_hour for peer in rows}:
                if (first_hour, age) not in hours_of_bounds:
                    hours = _hours_of_bounds(first_hour, age, kept_since=kept_since)
                    hours_of_bounds[first_hour, age] = hours
    return hours_of_bounds


def _asked(
    peers: Mapping[str, Peers],
    weights: Mapping[tuple[str, int], Mapping[int, float]],
    hours_of_bounds: HoursOfBounds,
) -> set[tuple[str, int]]:
    """Returns the subjects and hours of which absolute views are needed."""
    asked = {(subject, bound) for (subject, _), hours in weights.items() for bound in hours}
    for by_age in peers.values():
        for age, rows in by_age.items():
            for peer in rows:
                first_hour = peer.first_hour
                asked.add((peer.subject, first_hour))
                for hours in hours_of_bounds[first_hour, age].values():
                    asked.update((peer.subject, hour) for hour in hours)
    return asked


def _hours_of_bounds(
    first_hour: int, age: int, *, kept_since: int
) -> dict[int, Mapping[int, float]]:
    """Returns the hours, with their weights, whose absolute views are those of an object at each
    bound of the windows of the age. `first_hour` is that of its publication.
    """
    hours: dict[int, Mapping[int, float]] = {}
    for bound in BOUNDS_OF_AGE[age]:
        if bound == 0:
            hours[bound] = {first_hour: 1.0}
        else:
            hours[bound] = _weights(first_hour + bound, age=bound, kept_since=kept_since)
    return hours


def _gains(
    rows: Iterable[Peer],
    age: int,
    *,
    hours_of_bounds: HoursOfBounds,
    kept_since: int,
    absolute: Mapping[tuple[str, int], int],
) -> Mapping[int, Sequence[float]]:
    """Returns what the peers gained in each of the windows of the age, by the window's number.

    Peers that nobody has ever viewed are left out: they may be drafts.
    """
    gains: defaultdict[int, list[float]] = defaultdict(list)
    for peer in rows:
        first_hour = peer.first_hour
        if (peer.subject, first_hour) not in absolute:
            continue
        views = {}
        for bound, hours in hours_of_bounds[first_hour, age].items():
            parts = [share * absolute[peer.subject, hour] for hour, share in hours.items()]
            views[bound] = sum(parts)
        for number in NUMBERS_OF_AGE[age]:
            window = WINDOWS[number]
            if first_hour + window.since >= kept_since or window.is_known_by_day:
                # Below zero after a reset.
                gains[number].append(max(0.0, views[window.until] - views[window.since]))
    return gains


def _weights(hour: int, *, age: int, kept_since: int) -> Mapping[int, float]:
    """Returns the hours whose absolute views make up those before that hour, with their weights.

    A thinned day has its last views only. What it had by an hour is on the line from its start to
    its end. That says nothing of an age below a day, for which there are no hours then.
    """
    if hour >= kept_since:
        return {hour: 1.0}
    if age < 24:
        return {}
    day = buckets.local_day(hour)
    first = local_time.first_hour_of(day)
    end = local_time.first_hour_of(day + buckets.DAY)
    share = (hour - first) / (end - first)
    return {first: 1 - share, end: share}


def _views(
    rows: Iterable[Peer],
    age: int,
    *,
    weights: Mapping[tuple[str, int], Mapping[int, float]],
    absolute: Mapping[tuple[str, int], int],
) -> Iterator[float]:
    """Yields the views of the peers from their publication until that age.

    Peers that nobody has ever viewed are left out: they may be drafts.
    """
    for peer in rows:
        before = absolute.get((peer.subject, peer.first_hour))
        hours = weights[peer.subject, peer.hour_at(age)]
        if before is None or not hours:
            continue
        until = sum(share * absolute[peer.subject, hour] for hour, share in hours.items())
        # Below zero after a reset.
        yield max(0.0, until - before)
