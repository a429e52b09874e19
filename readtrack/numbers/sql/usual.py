"""What is usual: bands of views by age, and by hour of the week. Full flushes compute them from
history and from nothing else.

A band is made as CrowdTangle's benchmarks were: the highest and the lowest quarter of the numbers
are left out. What remains, the middle half, has a lowest number, a mean and a highest number.
"""

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from statistics import fmean
from typing import Any, NamedTuple

from django.db.models import F, Value

from readtrack.numbers.models import History, Usual
from readtrack.numbers.sql.history import FOREVER
from readtrack.numbers.sql.history_lock import lock_history
from readtrack.sql import databases, vendors
from readtrack.store import scripts
from readtrack.subjects import subject_column

#: The ages (hours since publication) at which objects are compared. Between them, lines are drawn.
AGES = (1, 2, 3, 6, 12, 24, 36, 48, 72, 120, 168, 336, 720, 1440, 2160, 4320, 8760)
#: Between two ages the line is that of the peers of the later one, so that no object between two
#: ages is its own peer. What they had until the earlier one is stored under START + the later one.
START = 10_000
HOURS_OF_WEEK = 7 * 24
DIGITS = 2  # behind the decimal point of a stored number
# Hours between two lookups of a subject's history, at most, for which all rows between them are
# read instead: they are next to each other.
HOURS_APART = 12


class Ends(NamedTuple):
    """The ends of what is usual, as pages show them."""

    low: int
    high: int


class Band(NamedTuple):
    """The usual views: the mean of the middle half of some numbers, and the ends of that half."""

    low: float
    usual: float
    high: float

    @property
    def ends(self) -> Ends:
        """The ends of that half, as pages show them."""
        return Ends(round(self.low), round(self.high))


NOTHING = Band(0, 0, 0)
#: Bands by age (hours), and by START and an age; or by slot of the week: 0 to 167 for the hours
#: from Monday on, in TIME_ZONE, and from HOURS_OF_WEEK on for the days; or by the number of a
#: window of age (gained.py). What too few numbers are known of is missing.
Bands = Mapping[int, Band]


def band_of(numbers: Iterable[float]) -> Band:
    """Returns the band of the numbers, one at least."""
    in_order = sorted(numbers)
    quarter = len(in_order) // 4
    middle = in_order[quarter : len(in_order) - quarter]
    return Band(middle[0], fmean(middle), middle[-1])


def at_age(bands: Bands, age: float) -> Band | None:
    """Returns the usual views until that age (hours), on the line between two of AGES.

    Both ends of the line are of peers of the later age, so an object that is compared is none of
    them. None if too few objects are known that are so old.
    """
    if age <= 0:
        return NOTHING
    index = bisect_left(AGES, age)
    if index == len(AGES):
        return None
    later_age = AGES[index]
    earlier_age = age_before(later_age)
    later = bands.get(later_age)
    earlier = bands.get(START + later_age) if earlier_age else NOTHING
    if later is None or earlier is None:
        return None
    share = (age - earlier_age) / (later_age - earlier_age)
    return Band(*(old + share * (new - old) for old, new in zip(earlier, later, strict=True)))


def age_before(age: int) -> int:
    """Returns the one of AGES before that one; 0 for the first."""
    index = AGES.index(age)
    return AGES[index - 1] if index else 0


def name_of(label: str, section: str = "") -> str:
    """Returns the name of the bands by age of a model, or of its objects in a section."""
    return subject_column(f"{label}@{section}" if section else label)


def name_of_week(label: str = "") -> str:
    """Returns the name of the bands by hour of the week of a model; "" for the whole site."""
    return subject_column(f"week:{label}")


def name_of_past(label: str = "") -> str:
    """Returns the name of the past views of a model; "" for the whole site."""
    return subject_column(f"past:{label}")


class Past(NamedTuple):
    """The views of a model, or of the whole site, in each hour of some whole days."""

    first_hour: int  # since 1970
    views: Sequence[int]

    def of(self, hours: range) -> Sequence[int]:
        """Returns the views in these hours (since 1970); none unless all of them are known."""
        if hours.start < self.first_hour or hours.stop > self.first_hour + len(self.views):
            return []
        return self.views[hours.start - self.first_hour : hours.stop - self.first_hour]


def replace(
    bands_by_name: Mapping[str, Bands], past_by_name: Mapping[str, Past] | None = None, *, hour: int
) -> None:
    """Stores these bands and past views, as of that hour (since 1970), in the place of all earlier
    ones.
    """
    rows = []
    for name, bands in bands_by_name.items():
        if bands:
            rows.append(Usual(subject=name, hour=hour, bands=_as_text(name, bands)))
    for name, past in (past_by_name or {}).items():
        rows.append(Usual(subject=name, hour=hour, bands=_past_as_text(name, past)))
    databases.retried(databases.of(Usual), partial(_replace, rows))


def _replace(rows: Sequence[Usual]) -> None:
    with databases.own_transaction(databases.of(Usual)):
        lock_history()  # because another flush may do the same
        databases.rows(Usual).all().delete()
        databases.rows(Usual).bulk_create(rows)


def stored_hour() -> int | None:
    """Returns the hour as of which bands are stored; None if there are none."""
    hour: int | None = databases.rows(Usual).values_list("hour", flat=True).first()
    return hour


def _as_text(name: str, bands: Bands) -> str:
    """Returns a name and its bands as text. The name is in it because a UNION has one column of
    texts.
    """
    rounded = {}
    for slot, band in bands.items():
        rounded[slot] = [round(number, DIGITS) for number in band]
    return json.dumps([name, rounded], separators=(",", ":"))


def _past_as_text(name: str, past: Past) -> str:
    """Returns a name and past views as text."""
    return json.dumps([name, past._asdict()], separators=(",", ":"))


def _out_of_text(text: str) -> tuple[str, Bands | Past]:
    """Returns the name, and the bands or the past views, that were written as text."""
    name, content = json.loads(text)
    if "first_hour" in content:
        return name, Past(**content)
    return name, {int(slot): Band(*numbers) for slot, numbers in content.items()}


class AskedUsual(NamedTuple):
    """What is asked for: bands and past views by their names, and views before an hour by subject
    (as columns have it): that of its publication, and that with which the day before the present
    hour begins.
    """

    names: Collection[str] = ()
    hours: Mapping[str, int] = {}
    hours_of_day: Mapping[str, int] = {}


NOTHING_ASKED = AskedUsual()


class StoredUsual(NamedTuple):
    """What SQL has of it: bands and past views by name, and views by subject. What is 0 or unknown
    is missing.
    """

    bands: Mapping[str, Bands] = {}
    views_before: Mapping[str, int] = {}
    views_before_day: Mapping[str, int] = {}
    past: Mapping[str, Past] = {}


class Kinds(NamedTuple):
    """The numbers by which rows of `statement_of` say what they are."""

    bands: int
    views: int
    views_before_day: int


def statement_of(asked: AskedUsual, *, kinds: Kinds) -> tuple[str, list[Any]]:
    """Returns the SQL statement for what is asked, and its parameters, for a UNION with other rows.

    The columns are those of `day_visitors.statement_of`: a name is a text of bands or of
    past views, or a subject, a number its views; the other columns are NULL. It is "" if nothing is
    asked for.
    """
    selects = []
    parameters: list[Any] = []
    if asked.names:
        connection = databases.of(Usual)
        rows = databases.rows(Usual).filter(subject__in=asked.names)
        texts = rows.annotate(item_kind=Value(kinds.bands), item_name=F("bands"))
        compiler = texts.values_list("item_kind", "item_name").query.get_compiler(
            connection=connection
        )
        select, parameters_of_select = compiler.as_sql()
        selects.append(
            "SELECT item_kind, NULL AS item_day, item_name, 0 AS item_number,"  # noqa: S608 - Django's statement
            f" NULL AS item_sketch, NULL AS item_length FROM ({select}) AS usual"
        )
        parameters += parameters_of_select
    asked_hours = {kinds.views: asked.hours, kinds.views_before_day: asked.hours_of_day}
    for kind, hours in asked_hours.items():
        if not hours:
            continue
        statement, parameters_of_statement = _absolute([*hours.items()])
        selects.append(
            f"SELECT {kind}, NULL, subject, COALESCE(views, 0), NULL, NULL"  # noqa: S608 - a file
            f" FROM ({statement}) AS absolute"
        )
        parameters += parameters_of_statement
    return " UNION ALL ".join(selects), parameters


def stored(asked: AskedUsual) -> StoredUsual:
    """Returns what is asked for. Makes one query, none if nothing is asked for."""
    kinds = Kinds(0, 1, 2)
    statement, parameters = statement_of(asked, kinds=kinds)
    if not statement:
        return StoredUsual()
    with databases.of(Usual).cursor() as cursor:
        cursor.execute(statement, parameters)
        rows = cursor.fetchall()
    return from_rows(((kind, name, number) for kind, _, name, number, *_ in rows), kinds=kinds)


def from_rows(rows: Iterable[tuple[int, str, int]], *, kinds: Kinds) -> StoredUsual:
    """Returns what the rows of `statement_of` say. A row here has a kind, a name and a number."""
    bands: dict[str, Bands] = {}
    views: dict[str, int] = {}
    views_before_day: dict[str, int] = {}
    past: dict[str, Past] = {}
    for kind, name, number in rows:
        if kind == kinds.bands:
            stored_name, content = _out_of_text(name)
            if isinstance(content, Past):
                past[stored_name] = content
            else:
                bands[stored_name] = content
        elif kind == kinds.views:
            views[name] = int(number)
        elif kind == kinds.views_before_day:
            views_before_day[name] = int(number)
    return StoredUsual(bands, views, views_before_day, past)


class Span(NamedTuple):
    """Hours (since 1970) of a subject, in ascending order, that are read together."""

    subject: str
    hours: Sequence[int]


def absolute_views(pairs: Collection[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Returns the absolute views of subjects before hours (since 1970), by these pairs.

    A subject that history has no row of is left out. Subjects are as columns have them.
    """
    views_by_pair: dict[tuple[str, int], int] = {}
    for portion in scripts.sliced([*_spans(pairs)]):
        for span, rows in zip(portion, _rows_of_spans(portion), strict=True):
            if not rows:
                continue
            hours_of_rows = [hour for hour, _views in rows]
            for hour in span.hours:
                _, views = rows[bisect_left(hours_of_rows, hour) - 1]
                views_by_pair[span.subject, hour] = views
    return views_by_pair


def _spans(pairs: Iterable[tuple[str, int]]) -> Iterator[Span]:
    """Yields the spans that the pairs of a subject and an hour make up, in the order of the
    index.
    """
    for subject, pairs_of_subject in groupby(sorted(pairs), key=itemgetter(0)):
        hours: list[int] = []
        for _, hour in pairs_of_subject:
            if hours and hour - hours[-1] > HOURS_APART:
                yield Span(subject, hours)
                hours = []
            hours.append(hour)
        yield Span(subject, hours)


def _rows_of_spans(spans: Sequence[Span]) -> Sequence[Sequence[tuple[int, int]]]:
    """Returns the rows of each span, by hour: an hour, and the absolute views at its end. The first
    one has those before the span. A subject without history has none.
    """
    row = vendors.vendor_of(databases.of(History)).row
    values = []
    for number, span in enumerate(spans):
        since = min(int(span.hours[0]), FOREVER)
        until = min(int(span.hours[-1]), FOREVER)
        values.append(row % f"{number}, %s, {since}, {until}")
    statement = databases.statement(History, "views_in_spans", spans=", ".join(values))
    rows: list[list[tuple[int, int]]] = [[] for _ in spans]
    with databases.of(History).cursor() as cursor:
        cursor.execute(statement, [span.subject for span in spans])
        for number, hour, views in cursor.fetchall():
            if views is not None:
                rows[number].append((hour, int(views)))
    return [sorted(rows_of_span) for rows_of_span in rows]


def _absolute(pairs: Sequence[tuple[str, int]]) -> tuple[str, list[Any]]:
    """Returns the SQL statement for the absolute views before hours, and its parameters."""
    row = vendors.vendor_of(databases.of(History)).row
    rows = [row % f"%s, {min(int(hour), FOREVER)}" for _, hour in pairs]
    statement = databases.statement(History, "absolute_of_each", pairs=", ".join(rows))
    return statement, [subject for subject, _ in pairs]
