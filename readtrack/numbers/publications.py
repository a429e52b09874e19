"""Publications as notes on charts: of an object its own one, of the site and of categories the few
of each day.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from typing import Any

from django.db.models import Model
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from readtrack import buckets
from readtrack.numbers import local_time
from readtrack.numbers.data import DayNote
from readtrack.numbers.published import (
    publication_notes,
    published_at,
    published_field,
    time_published,
    value_of_time,
)
from readtrack.numbers.scope import Scope
from readtrack.texts import title_of

MOST_PUBLICATIONS = 5_000  # of a model in a period; with more there are no notes about them
MOST_DAYS = 14  # of a period; in a longer one the notes of nearly every day would hide its chart


def notes_of(scope: Scope) -> Mapping[date, list[DayNote]]:
    """Returns the notes about publications in the period by day.

    An object's own publication costs no query. Those of the site, of a category or of an author
    cost two for each model whose `publication_notes` is not 0.
    """
    notes: defaultdict[date, list[DayNote]] = defaultdict(list)
    if "object" in scope.chosen:
        if scope.published and scope.span.since <= scope.published < scope.span.until:
            day = local_time.day_of(scope.published)
            text = pgettext("a note on a chart", "Published")
            notes[day].append(DayNote(text, published=1, at=scope.published))
        return notes
    if scope.is_all_time or len(scope.span.hours) > MOST_DAYS * 24:
        return notes
    for model in scope.models:
        for day, note in _notes_of_model(model, scope):
            notes[day].append(note)
    return notes


def _notes_of_model(model: type[Model], scope: Scope) -> Iterator[tuple[date, DayNote]]:
    """Yields the day and each note about publications of a model.

    Of a day with too many to name there is their number. The newest of all is named in any case, so
    that its numbers are a click away.
    """
    most_named = publication_notes(model)
    if most_named <= 0:
        return
    pks_by_day = _published_in(scope, model)
    named_by_day = {day: pks for day, pks in pks_by_day.items() if len(pks) <= most_named}
    newest_day = max(pks_by_day, default=None)
    if newest_day is not None and newest_day not in named_by_day:
        named_by_day[newest_day] = pks_by_day[newest_day][-1:]
    rows_by_pk = _rows(model, scope, pks=[*chain.from_iterable(named_by_day.values())])
    for day, pks in pks_by_day.items():
        named = named_by_day.get(day, [])
        if len(named) < len(pks):
            text = ngettext("%(count)s published", "%(count)s published", len(pks))
            not_named = len(pks) - len(named)
            yield day, DayNote(text % {"count": len(pks)}, published=not_named)
        # A row that is missing was deleted meanwhile.
        for row in filter(None, map(rows_by_pk.get, named)):
            text = _("Published: %(title)s") % {"title": title_of(row)}
            yield day, DayNote(text, row, published=1, at=published_at(row))


def _published_in(scope: Scope, model: type[Model]) -> dict[date, list[Any]]:
    """Returns the primary keys of what was published in the period, by day; nothing if too much
    was.
    """
    field = published_field(model)
    if field is None:
        return {}
    in_period = {
        f"{field.name}__gte": value_of_time(field, scope.span.since),
        f"{field.name}__lt": value_of_time(field, scope.span.until),
    }
    published = scope.rows(model).filter(**in_period).order_by(field.name)
    pks_and_values = [*published.values_list("pk", field.name)[: MOST_PUBLICATIONS + 1]]
    if len(pks_and_values) > MOST_PUBLICATIONS:
        return {}
    return _by_day(pks_and_values)


def _by_day(pks_and_values: Iterable[tuple[Any, Any]]) -> dict[date, list[Any]]:
    """Returns the primary keys of what is published by now, by the day of publication.

    The values are those of the field with the time of publication.
    """
    pks_by_day: defaultdict[date, list[Any]] = defaultdict(list)
    for pk, value in pks_and_values:
        at = time_published(value)
        if at is not None and at <= buckets.now():
            pks_by_day[local_time.day_of(at)].append(pk)
    return pks_by_day


def _rows(model: type[Model], scope: Scope, *, pks: Sequence[Any]) -> dict[Any, Model]:
    """Returns those of the rows that exist, by primary key."""
    return scope.rows(model).in_bulk(pks) if pks else {}
