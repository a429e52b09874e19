"""The views of peers: what the last objects of a model, or of a section, had at the same age.

The peers at an age are the last PEERS objects that are at least that old. Their views are counted
from their publication on, so that previews, and views of an earlier publication, are left out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import DateTimeField, ForeignKey, Model
from django.utils import timezone

from readtrack import buckets, local_time
from readtrack.numbers.sql import thinning
from readtrack.numbers.sql.usual import AGES, Band, Bands, absolute_views, band_of, name_of
from readtrack.published import time_published
from readtrack.sql import databases
from readtrack.subjects import (
    label_of,
    news_links,
    published_field,
    subject_column,
    subject_of_row,
)

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
    peers = {name_of(label_of(model)): _last(candidates)}
    for section in _largest_sections(candidates):
        of_section = {
            age: [peer for peer in rows if peer.section == section]
            for age, rows in candidates.items()
        }
        peers[name_of(label_of(model), section)] = _last(of_section)
    return _bands(peers, kept_since=thinning.first_whole_hour(at=at))


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


def _bands(peers: Mapping[str, Peers], *, kept_since: int) -> dict[str, Bands]:
    """Returns the bands by name. `kept_since` is the first hour from which on history has hours."""
    weights: dict[tuple[str, int], Mapping[int, float]] = {}  # by subject and hour
    asked: set[tuple[str, int]] = set()
    for by_age in peers.values():
        for age, rows in by_age.items():
            for peer in rows:
                hour = peer.hour_at(age)
                weights[peer.subject, hour] = _weights(hour, age=age, kept_since=kept_since)
                asked.update((peer.subject, bound) for bound in weights[peer.subject, hour])
                asked.add((peer.subject, peer.first_hour))
    absolute = absolute_views(asked)
    bands: defaultdict[str, dict[int, Band]] = defaultdict(dict)
    for name, by_age in peers.items():
        for age, rows in by_age.items():
            numbers = [*_views(rows, age, weights=weights, absolute=absolute)]
            if len(numbers) >= FEWEST:
                bands[name][age] = band_of(numbers)
    return dict(bands)


def _weights(hour: int, *, age: int, kept_since: int) -> Mapping[int, float]:
    """Returns the hours whose absolute views make up those before that hour, with their weights.

    A thinned day has its last views only. What it had by an hour is on the line from its start to
    its end. That says nothing of an age below a day, for which there are no hours then.
    """
    if hour >= kept_since:
        return {hour: 1.0}
    if age < 24:
        return {}
    day = local_time.local_day(hour)
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
