"""The tables of a scope: rows of plain values.

The page shows the values as text. Exports have them as they are.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from readtrack import buckets
from readtrack.conf import conf
from readtrack.hits.hit import Reason
from readtrack.hits.stages import ENGAGED
from readtrack.numbers import groups, local_time, sources
from readtrack.numbers.changes import multiple, signed_per_cent
from readtrack.numbers.data import (
    ChartData,
    Counts,
    DayNote,
    Entry,
    GroupRow,
    Hashes,
    ScopeData,
)
from readtrack.numbers.objects import CANDIDATES, LEAST_OPENED, MOST, STILL_READ_DAYS
from readtrack.numbers.order import most_first
from readtrack.numbers.published import published_at
from readtrack.numbers.reports.reads import median
from readtrack.numbers.reports.usual_views import Usual
from readtrack.numbers.scope import COMPARISONS, Scope
from readtrack.numbers.sql import popular
from readtrack.numbers.sql.breakdown_history import OTHER as OTHER_VALUES
from readtrack.numbers.sql.memberships import NONE, OLDER, Group
from readtrack.numbers.sql.memberships import OTHER as OTHER_GROUPS
from readtrack.numbers.sql.usual import Band
from readtrack.numbers.usual import LOW, word_of
from readtrack.numerals import exact, share
from readtrack.store.skips import NAME_PREFIX, OTHER
from readtrack.texts import title_of

#: What the values of a column are; `text` shows each kind in its own way.
ValueKind = Literal["text", "number", "share", "change", "seconds", "times", "trend", "time"]

NOT_KNOWN = "\N{EN DASH}"
ROWS_ON_PAGE = 10
HARDLY_READ = 100 / 3  # per cent of the views that became reads, at most
MOST_PER_CENT = 1_000  # a higher change is shown as a factor

#: The names of the reasons for which hits do not count, for people.
REASONS: Mapping[Reason, Any] = {
    "bot": gettext_lazy("robot, by its name"),
    "agent": gettext_lazy("read by assistants"),
    "honeypot": gettext_lazy("robot, by a link that people do not see"),
    "repeat": gettext_lazy("seen by the same visitor already"),
    "rate": gettext_lazy("too many in a short time"),
    "prefetch": gettext_lazy("fetched ahead by a browser"),
    "embed": gettext_lazy("part of another page"),
    "method": gettext_lazy("not a request for a page"),
    "status": gettext_lazy("not a successful page"),
    "anonymous": gettext_lazy("anonymous visitors are not counted"),
    "excluded": gettext_lazy("left out by the site's settings, or a link of the admin"),
    "busy": gettext_lazy("no connection to Redis was free"),
    "error": gettext_lazy("an error: it could not be counted"),
}
#: Those of robots and assistants.
OF_ROBOTS: Sequence[Reason] = ("bot", "agent", "honeypot")
OF_THE_SITE = gettext_lazy("Of the whole site, whatever the filters.")

#: The names of groups by age, for people; see `readtrack.numbers.sql.memberships`.
AGES: Mapping[str, Any] = {
    "1": gettext_lazy("Published on the same day"),
    "7": gettext_lazy("2 to 7 days"),
    "30": gettext_lazy("8 to 30 days"),
    "90": gettext_lazy("31 to 90 days"),
    OLDER: gettext_lazy("Older than 90 days"),
    NONE: gettext_lazy("Not known when published"),
}
#: The titles of the groups of all objects that lack a category or an author.
WITHOUT: Mapping[str, Any] = {
    "section": gettext_lazy("Without a category"),
    "author": gettext_lazy("Without an author"),
}
#: The filters of the address that choose a group.
FILTERS_OF_GROUPS: Mapping[str, str] = {"section": "category", "author": "author"}


class Column(NamedTuple):
    """A column: its name in exports, its heading, and the kind of its values."""

    name: str
    heading: Any
    value_kind: ValueKind = "number"


#: The columns by key. The key is the name, unless two tables have one column under two headings.
COLUMNS: Mapping[str, Column] = {
    "since": Column("since", gettext_lazy("Since"), "time"),
    "title": Column("title", gettext_lazy("Title"), "text"),
    "stage": Column("stage", gettext_lazy("Stage"), "text"),
    "section": Column("section", gettext_lazy("Category"), "text"),
    "author": Column("author", gettext_lazy("Author"), "text"),
    "age": Column("age", gettext_lazy("Age"), "text"),
    "reason": Column("reason", gettext_lazy("Reason"), "text"),
    "robot": Column("robot", gettext_lazy("Robot"), "text"),
    "views": Column("views", gettext_lazy("Views")),
    "growth": Column("growth", gettext_lazy("More views")),
    "visitors": Column("visitors", gettext_lazy("Visitors")),
    "seen": Column("seen", gettext_lazy("Seen")),
    "unseen": Column("unseen", gettext_lazy("Not seen")),
    "reads": Column("reads", gettext_lazy("Reads")),
    "count": Column("count", gettext_lazy("Passes")),
    "hits": Column("hits", gettext_lazy("Hits")),
    "readers": Column("readers", gettext_lazy("Readers")),
    "unread": Column("unread", gettext_lazy("Unread for")),
    "before": Column("before", pgettext_lazy("the number of the period before", "Before")),
    "yesterday": Column("yesterday", gettext_lazy("Yesterday")),
    "change": Column("change", pgettext_lazy("of a number", "Change"), "change"),
    "share": Column("share", gettext_lazy("Share"), "share"),
    "rate": Column("rate", gettext_lazy("Of the first stage"), "share"),
    "step_rate": Column("step_rate", gettext_lazy("Of the stage before"), "share"),
    "ratio": Column("ratio", pgettext_lazy("a share of views", "Read"), "share"),
    "median": Column("median", gettext_lazy("Median time"), "seconds"),
    "usual": Column(
        "usual", pgettext_lazy("heading of a column with multiples", "× usual"), "times"
    ),
    "usual_low": Column("usual_low", gettext_lazy("Usual, from")),
    "usual_high": Column("usual_high", gettext_lazy("Usual, to")),
    "trend": Column("trend", gettext_lazy("Trend"), "trend"),
    "by_hour": Column("trend", gettext_lazy("By the hour"), "trend"),
    "notes": Column("notes", gettext_lazy("Notes"), "text"),
}
#: Keys of the columns that compare a number with that of the period before.
COMPARED = ("before", "change")
#: Keys of the columns of what is usual at a point of time.
USUAL = ("usual_low", "usual_high")
#: Keys of the columns about refused hits.
REFUSED = ("hits", "share", "yesterday", "by_hour")


class Row(NamedTuple):
    """A row: its values in the order of the columns, and the filters that choose what it shows.

    In a table of objects the first value is the object, whose title may cost queries.
    """

    values: Sequence[Any]
    filters: Mapping[str, str] = {}


class Table(NamedTuple):
    """A table. `caption` says what is counted. `empty` is shown in the place of no rows."""

    name: str
    title: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    empty: str = ""
    row_limit: int = ROWS_ON_PAGE  # rows that the page shows; an export has all

    def values(self, column_name: str) -> list[Any]:
        """Returns the values of a column, one for each row."""
        column_names = [column.name for column in self.columns]
        index = column_names.index(column_name)
        return [row.values[index] for row in self.rows]


class ObjectRows(NamedTuple):
    """The rows of a table of objects, its columns, and which objects were compared."""

    columns: list[Column]
    rows: list[Row]
    caption: str  # which objects were compared; "" if all objects of the scope were


class DimensionLabels(NamedTuple):
    """The names of a dimension for people."""

    title: Any  # of its table, such as "Countries"
    heading: Any  # of its column, such as "Country"


def change(now: int, before: int) -> int | None:
    """Returns the change in per cent; None where there was nothing before."""
    if not before:
        return None
    return round(100 * (now - before) / before)


def _percent(number: int | None, whole: int) -> float | None:
    """Returns the number's share of the whole in per cent; None if one of the two is not known."""
    if not whole or number is None:
        return None
    return 100 * number / whole


def _columns(*column_keys: str) -> list[Column]:
    return [COLUMNS[key] for key in column_keys]


def text(value: Any, value_kind: ValueKind) -> str:
    """Returns a value as the page shows it."""
    if value is None:
        return NOT_KNOWN
    if value_kind == "number":
        return exact(value)
    if value_kind == "share":
        return share(value)
    if value_kind == "change":
        return _change_text(value)
    if value_kind == "seconds":
        return _("%(seconds)s s") % {"seconds": exact(value)}
    if value_kind == "times":
        return multiple(value)
    if value_kind == "trend":
        return _small_line(value)
    return title_of(value)


def change_text(now: int | None, before: int | None) -> str:
    """Returns the change of a number as the page shows it: "new" where nothing was before."""
    if now and before == 0:
        return _new()
    per_cent = None if now is None or before is None else change(now, before)
    return text(per_cent, "change")


def _new() -> str:
    return pgettext("in the place of a change, where there was nothing before", "new")


def _change_text(per_cent: float) -> str:
    if per_cent > MOST_PER_CENT:
        return f"\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}{exact(round(per_cent / 100) + 1)}"
    return signed_per_cent(per_cent)


def texts_of_row(row: "Row", columns: Sequence[Column]) -> list[str]:
    """Returns the values of a row as the page shows them."""
    values = {column.name: value for column, value in zip(columns, row.values, strict=True)}
    counts = [values[column.name] for column in columns if column.value_kind == "number"]
    # Where nothing was before, a change is not known, and "new" if there is something now.
    is_new = values.get("before") == 0 and any(counts)
    return [
        _new() if is_new and column.name == "change" else text_of_cell(values[column.name], column)
        for column in columns
    ]


def text_of_cell(value: Any, column: Column) -> str:
    """Returns a value of a column as the page shows it."""
    is_of_dimension = column.name in VALUES or column.name not in COLUMNS
    if is_of_dimension and column.value_kind == "text":
        return name_of_value(column.name, str(value))
    return text(value, column.value_kind)


def _small_line(values: Sequence[int]) -> str:
    """Returns the points of an SVG polyline, within 60 by 16 units."""
    highest = max([1, *values])
    last_index = max(1, len(values) - 1)
    points = []
    for index, value in enumerate(values):
        x = 60 * index / last_index
        y = 15 - 14 * value / highest  # SVG counts from the top; the line stays 1 off both edges
        points.append(f"{x:.1f},{y:.1f}")
    return " ".join(points)


def numbers_beside(chart: ChartData, name: str) -> list[int | None]:
    """Returns one of the numbers of the period before, beside each point of the chart."""
    return [None if point is None else getattr(point, name) for point in chart.points_before]


def over_time(data: ScopeData) -> Table:
    """Returns the numbers of the chart by point, with the views of the period before."""
    assert data.chart is not None  # noqa: S101 - it is loaded for this table
    views_before = numbers_beside(data.chart, "views")
    views_before += [None] * len(data.starts)  # where nothing is compared
    notes = notes_by_point(data, data.chart)
    has_seen = bool(data.chart.total.seen)  # none on a site without the page's script
    rows = []
    for index, (start, point) in enumerate(zip(data.starts, data.chart.points, strict=False)):
        visitors = data.people.by_point[index] if data.people.by_point else None
        counts: Sequence[int | None] = (point.views, visitors, _reads_of(point, data))
        if has_seen:
            counts = (*counts, point.seen, _unseen(data, index))
        if start > data.chart.known_until:
            counts = [None] * len(counts)
        usual = _ends_of_band(data.chart.usual[index]) if data.chart.usual else ()
        note = "; ".join(note.text for note in notes[index])
        since = timezone.localtime(start).isoformat()
        rows.append(Row((since, *counts, views_before[index], *usual, note)))
    heading_before = f"{COLUMNS['views'].heading} ({COMPARISONS[data.asked.comparison]})"
    columns = [
        *_columns("since", "views", "visitors", "reads"),
        *(_columns("seen", "unseen") if has_seen else ()),
        Column("before", heading_before),
        *(_columns(*USUAL) if data.chart.usual else []),
        *_columns("notes"),
    ]
    return Table("over-time", _("Views over time"), "", columns, rows, row_limit=len(rows))


def _ends_of_band(band: Band | None) -> Sequence[int | None]:
    """Returns the ends of what is usual at a point; None twice if nothing is."""
    return (None, None) if band is None else band.ends


def _unseen(data: ScopeData, index: int) -> int | None:
    """Returns how many views of a point were not seen; None while only the views are known.

    Seen views of whole models are added up by full flushes only.
    """
    assert data.chart is not None  # noqa: S101
    if not data.scope.is_listed:
        is_last = index + 1 >= len(data.starts)
        end = data.scope.span.until if is_last else data.starts[index + 1]
        if end > buckets.time_of(data.chart.summed_until):
            return None
    point = data.chart.points[index]
    return max(0, point.views - point.seen)


def _reads_of(point: Counts, data: ScopeData) -> int | None:
    """Returns the reads of a point; None with a chosen value, because reads have none."""
    return None if data.by_value else point.reads


def notes_by_point(data: ScopeData, chart: ChartData) -> list[list[DayNote]]:
    """Returns the notes of each point: those of a day are at the point in which the day begins.

    Where points are hours, what was published is at the hour of its publication.
    """
    days = [*map(local_time.day_of, data.starts)]
    notes: list[list[DayNote]] = [[] for _ in days]
    for day, notes_of_day in chart.notes.items():
        index_of_day = bisect_left(days, day)  # of the first hour of the day, if points are hours
        if day not in days:
            index_of_day -= 1  # the day lies within the week or month that begins before it
        for note in notes_of_day:
            index = index_of_day
            if data.scope.by == "hour" and note.at is not None:
                index = max(0, bisect_right(data.starts, note.at) - 1)
            notes[index].append(note)
    return notes


def _of_objects(
    data: ScopeData, entries: Iterable[Entry], *column_keys: str, compared: str = "views"
) -> ObjectRows:
    """Returns rows with an object and the values of these columns.

    `compared` is the number (a field of Counts) that is compared with the period before.
    """
    if not data.is_compared:
        column_keys = tuple(key for key in column_keys if key not in COMPARED)
    if not data.usual:
        column_keys = tuple(key for key in column_keys if key != "usual")
    rows = []
    for entry in islice(entries, data.row_limit):
        numbers = _numbers_of(entry, data, compared=compared)
        values = [numbers[key] for key in column_keys]
        rows.append(Row((data.objects[entry.subject], *values), {"object": entry.subject}))
    caption = ""
    if data.objects.is_cut:
        caption = _among(data)
    return ObjectRows(_columns("title", *column_keys), rows, caption)


def _among(data: ScopeData) -> str:
    """Returns the sentence that the objects of a list were looked for among the most viewed."""
    if data.by_value and not data.asked.is_listed and not data.asked.is_all_time:
        return _("The list has the stories with the most views of the period.")
    return _("Among the stories with the most views of all time.")


def _numbers_of(entry: Entry, data: ScopeData, *, compared: str) -> dict[str, Any]:
    """Returns the numbers of an object by the keys of their columns.

    With a chosen value of a dimension its reads are None, because they have no values.
    """
    before, change_since = _compared(
        data, getattr(entry.compared, compared), getattr(entry.before, compared)
    )
    reading = data.hashes.get(("reading", entry.subject), Counter())
    if data.by_value and not data.by_value.is_compared_by_day:
        before = None
        change_since = None
    return {
        "views": entry.now.views,
        "reads": None if data.by_value else entry.now.reads,
        "visitors": data.people.by_subject.get(entry.subject),
        "usual": _times_usual(data, entry),
        "growth": entry.growth,
        "before": before,
        "change": change_since,
        "trend": _trend(entry, data),
        "ratio": _percent(min(entry.now.reads, entry.now.views), entry.now.views),
        "median": median(reading) if reading[ENGAGED] else None,
    }


def _trend(entry: Entry, data: ScopeData) -> list[int]:
    """Returns the views of an object at each point of the chart."""
    last_index = data.gap_index + len(data.starts)
    trend = [0] * len(data.starts)
    for index, views in entry.gained.views.items():
        if index > data.gap_index:
            # The rest of the last point, which is not compared, has an index of its own.
            trend[min(index, last_index) - data.gap_index - 1] += views
    return trend


def _times_usual(data: ScopeData, entry: Entry) -> float | None:
    """Returns how many times the usual views an object has; None if nothing is usual."""
    if entry.subject not in data.usual:
        return None
    return round(data.usual[entry.subject].times, 2)


def _compared(
    data: ScopeData, compared: int, before: int, *, kind: str = ""
) -> tuple[int | None, int | None]:
    """Returns the number before and the change in per cent, the values of the columns COMPARED.

    `compared` is what the number before is compared with. `kind` is that of the hashes that have
    the numbers; "" for others. Both are None if history does not cover the period before.
    """
    if not data.is_before_known or kind in data.late_kinds:
        return None, None
    return before, change(compared, before)


def most_viewed(data: ScopeData) -> Table:
    """Returns the objects with the most views in the period, or with a chosen value in it."""
    if data.asked.is_joint:
        return _most_viewed_with_values(data)
    viewed = [entry for entry in data.entries if entry.now.views]
    columns = ["views", *COMPARED, "usual", "visitors", "reads", "trend"]
    objects = _of_objects(data, viewed, *_columns_by_value(data, columns))
    if data.by_value and objects.rows:
        caption = " ".join([objects.caption, known_by_value(data)])
        objects = objects._replace(caption=caption.strip())
    empty = _("No views in this period.")
    return Table(
        "most-viewed", _("Top stories"), objects.caption, objects.columns, objects.rows, empty
    )


def _most_viewed_with_values(data: ScopeData) -> Table:
    """Returns the objects that were viewed with each of several values of dimensions.

    There is a column of views for each value. The first of them sorts the rows.
    """
    values = data.asked.values
    columns = _columns("title")
    columns += [
        Column(dimension, name_of_value(dimension, value)) for dimension, value in values.items()
    ]
    rows = []
    for entry in data.entries:
        counts = []
        for dimension, value in values.items():
            by_value = data.hashes.get((f"views:{dimension}", entry.subject), Counter())
            counts.append(by_value[value])
        if all(counts):
            rows.append(Row((data.objects[entry.subject], *counts), {"object": entry.subject}))
    rows.sort(key=_first_count, reverse=True)
    each = _("Views with each value by itself; with all of them together they are not known.")
    empty = _("No views with these values.")
    caption = f"{each} {_among(data)}" if data.objects.is_cut else each
    return Table("most-viewed", _("Top stories"), caption, columns, rows, empty)


def _columns_by_value(data: ScopeData, columns: Sequence[str]) -> list[str]:
    """Returns the columns without those that are not known with the chosen value."""
    unknown = set()
    if data.by_value:
        unknown.add("usual")
    if data.by_value and not _has_trend(data):
        unknown.add("trend")
    return [column for column in columns if column not in unknown]


def _has_trend(data: ScopeData) -> bool:
    """Returns True if the views of an object by value are known at each point of the chart."""
    return not data.asked.is_all_time and data.scope.by != "hour"


def known_by_value(data: ScopeData) -> str:
    """Returns a sentence about what is known with the chosen values of dimensions: views only."""
    filters = []
    for dimension, value in data.asked.values.items():
        filters.append(f"{labels_of(dimension).heading}: {name_of_value(dimension, value)}")
    if data.asked.is_joint:
        sentence = _("Views are known with each of these filters by itself: %(filters)s.")
    else:
        sentence = _("With the filter by %(filters)s only the views are known.")
    return sentence % {"filters": "; ".join(filters)}


def _first_count(row: Row) -> int:
    """Returns the first count of an object's row, which comes after the object."""
    count: int = row.values[1]
    return count


def grew_most(data: ScopeData) -> Table:
    """Returns the objects with the most views more than in the period before."""
    columns = ["growth", "views", *COMPARED, "usual", "trend"]
    entries: Iterable[Entry] = grown(data)
    empty = _("Nothing was viewed more often than before.")
    if not data.is_compared and data.scope.before is not None:
        empty = _("It is compared from the first whole hour on.")
    if not data.is_before_known:
        entries = []  # all views of the period would be growth
        empty = _("Nothing was counted so early, so there is nothing to compare with.")
    if data.by_value and not data.by_value.is_compared_by_day:
        entries = []
        empty = _("By value, today is compared once it is over.")
    objects = _of_objects(data, entries, *_columns_by_value(data, columns))
    caption = _caption_of_grown(data, objects.caption)
    return Table("grew-most", _("Grew most"), caption, objects.columns, objects.rows, empty)


def grown(data: ScopeData) -> Iterator[Entry]:
    """Yields what grew, most first, without what was published after the period before began: all
    its views would be growth, though it may be losing them. Top stories have it.
    """
    for entry in sorted(data.entries, key=_growth, reverse=True):
        if entry.growth <= 0:
            break
        if data.scope.had_time_before(published_at(data.objects[entry.subject])):
            yield entry


def _growth(entry: Entry) -> int:
    return entry.growth


def _caption_of_grown(data: ScopeData, caption: str) -> str:
    """Returns which objects were compared, and which were not, after the caption of their rows."""
    among = _among_grown(data, caption)
    if data.scope.before is None:
        return among
    text = _("Without what was published since %(day)s: all its views would be more than before.")
    without = text % {"day": date_format(data.scope.before.first_day, "DATE_FORMAT")}
    return f"{among} {without}".lstrip()


def _among_grown(data: ScopeData, caption: str) -> str:
    """Returns which objects were compared, after the caption of their rows."""
    if data.by_value:
        return caption
    # The list of all time has no first day. If it is not cut, it has all objects.
    is_of_list = not data.asked.is_listed and data.objects.days != popular.EVER
    if caption or not is_of_list:
        return caption
    first_day = timezone.localtime(buckets.now() - data.objects.days * buckets.DAY)
    text = ngettext(
        "Among the %(count)s story with the most views since %(since)s.",
        "Among the %(count)s stories with the most views since %(since)s.",
        MOST,
    )
    return text % {"count": exact(MOST), "since": date_format(first_day, "DATE_FORMAT")}


def by_dimension(dimension: str, data: ScopeData) -> Table:
    """Returns the table of a dimension: the views by its values."""
    views = _views_by_value(data.gains.now, dimension)
    total = views.total()
    compared_columns: Sequence[str] = ()
    views_before: Counter[str] | None = None
    if data.gains.before is not None:
        compared_columns = COMPARED
        views_before = _views_by_value(data.gains.before, dimension)
    views_compared = _views_by_value(data.gains.compared, dimension)
    labels = labels_of(dimension)
    columns = [
        Column(dimension, labels.heading, "text"),
        *_columns("views", *compared_columns, "share"),
    ]
    rows = []
    for value, count in most_first(views):
        compared: Sequence[int | None] = ()
        if views_before is not None:
            compared = _compared(
                data, views_compared[value], views_before[value], kind=f"views:{dimension}"
            )
        values = (value, count, *compared, _percent(count, total))
        rows.append(Row(values, {dimension: value}))
    caption = caption_of_dimension(data, dimension, known=total)
    return _described(data, Table(f"by-{dimension}", labels.title, caption, columns, rows))


def caption_of_dimension(data: ScopeData, dimension: str, *, known: int) -> str:
    """Returns what there is to say of a dimension: since when its values are known, if that is too
    short to be compared, and how many views have none. `known` is how many have one.
    """
    texts = []
    if known:
        texts.append(_caption_of_late(data, f"views:{dimension}"))
    if dimension in WITH_UNKNOWN:
        texts.append(caption_of_unknown(data, known))
    return " ".join(filter(None, texts))


def _caption_of_late(data: ScopeData, kind: str) -> str:
    """Returns since when hashes of this kind are counted, if that is too short to be compared."""
    is_late = data.is_compared and kind in data.late_kinds
    if not (is_late and data.is_before_known):
        return ""
    day = date_format(timezone.localtime(data.first_gains[kind]), "DATE_FORMAT")
    text = _("First counted on %(day)s, so there is nothing to compare with.")
    return text % {"day": day}


def caption_of_unknown(data: ScopeData, known: int) -> str:
    """Returns of how many views of the period nobody knows the source; "" if there are none.

    Shares are those of the others. The views of the last minutes have no source in SQL yet; others
    never get one, such as those from before the dimension was turned on.
    """
    unknown = _views_added_up(data) - known
    if not known or unknown <= 0 or data.asked.is_all_time:
        return ""
    text = ngettext(
        "%(count)s more view has no known source.",
        "%(count)s more views have no known source.",
        unknown,
    )
    return text % {"count": exact(unknown)}


def _views_added_up(data: ScopeData) -> int:
    """Returns the views of the period of all objects whose values of dimensions are added up; 0 if
    they are not those of the period.
    """
    if data.chart is None or not data.has_gains:
        return 0
    views = data.chart.total.views
    if data.asked.is_listed:
        first = {*data.objects.first}
        views -= sum(entry.now.views for entry in data.entries if entry.subject not in first)
    return views


def _views_by_value(hashes: Hashes, dimension: str) -> Counter[str]:
    """Returns the views by the values of a dimension, of all subjects together."""
    views = Counter[str]()
    for (hash_kind, _subject), counts in hashes.items():
        if hash_kind == f"views:{dimension}":
            views += counts
    return views


def _described(data: ScopeData, table: Table) -> Table:
    """Returns the table of a dimension or a funnel with words about what it counts.

    The title says if the counts are of all time. The caption says of which objects they are, and
    ends with the table's own caption.
    """
    title = table.title
    caption = _("Of all stories in the period; the last minutes may be missing.")
    if data.has_gains and data.asked.is_listed:
        caption = _caption_of_days(data)
    empty = _("No views in this period.")
    if table.name != "by-campaign":  # which few views have
        empty = _empty_of_flushes(data)
    if not data.has_gains:
        title = of_all_time(title)
        count = len(data.objects.first)
        caption = ngettext(
            "Views of all time of the most viewed story of the period.",
            "Views of all time of the %(count)s most viewed stories of the period together.",
            count,
        ) % {"count": exact(count)}
        empty = _("Nothing yet.")
        if "object" in data.asked.chosen:
            caption = _("Views of all time.")
    return table._replace(title=title, caption=f"{caption} {table.caption}".rstrip(), empty=empty)


def _empty_of_flushes(data: ScopeData) -> str:
    """Returns the text of a table without rows to which flushes add the views.

    Those since the last flush are not in it, so it may be empty beside views that the page has.
    """
    if data.scope.is_present and (data.chart is None or data.chart.total.views):
        return _("None yet. Views of the last hour may be missing.")
    return _("No views in this period.")


def _caption_of_days(data: ScopeData) -> str:
    """Returns the caption of a table whose numbers are those of the days of objects."""
    caption = _("Of all stories in the period; the last minutes may be missing.")
    if "object" in data.asked.chosen:
        caption = _("In the period; the last minutes may be missing.")
    elif data.objects.is_cut:
        count = len(data.objects.first)
        caption = ngettext(
            "Of the %(count)s most viewed story of the period.",
            "Of the %(count)s most viewed stories of the period together.",
            count,
        ) % {"count": exact(count)}
    return caption


def of_all_time(title: str) -> str:
    """Returns the title of a table whose numbers are of all time, whatever the period."""
    return f"{title} ({_('All time')})"


def really_read(data: ScopeData) -> Table:
    """Returns the objects with the most reads in the period.

    Objects that were only begun to be read come last.
    """
    read = [entry for entry in data.entries if entry.now.reads or _is_begun(entry, data)]
    objects = _of_objects(
        data, read, "reads", *COMPARED, "views", "ratio", "median", compared="reads"
    )
    caption = _("In the period; the median time is that of all time.")
    return Table(
        name="really-read",
        title=_("Really read"),
        caption=f"{caption} {objects.caption}".rstrip(),
        columns=objects.columns,
        rows=objects.rows,
        empty=_("No text was read in this period."),
    )


def _is_begun(entry: Entry, data: ScopeData) -> bool:
    """Returns True if somebody began to read the object, and it was viewed in the period.

    On the page of a single object its reading time is worth a row in any period.
    """
    is_of_period = entry.now.views or "object" in data.asked.chosen
    reading = data.hashes.get(("reading", entry.subject), Counter())
    return bool(is_of_period and reading[ENGAGED])


def funnel(data: ScopeData) -> Table:
    """Returns the stages of the funnels of all objects together.

    A stage counts once in a visitor's pass. There are no rows if nobody has entered the funnel.
    """
    first_stage = data.stages.now[0]
    stages = data.stages.now if first_stage.count else []
    stages_before = data.stages.before
    compared_columns = () if stages_before is None else COMPARED
    rows = []
    for index, stage in enumerate(stages):
        compared: Sequence[int | None] = ()
        if stages_before is not None:
            count = data.stages.compared[index].count
            compared = _compared(data, count, stages_before[index].count, kind="funnel")
        rates = (100 * stage.rate, 100 * stage.step_rate)
        rows.append(Row((stage.name, stage.count, *compared, *rates)))
    columns = _columns("stage", "count", *compared_columns, "rate", "step_rate")
    caption = _("A visitor who comes again after an hour makes another pass.")
    if rows:
        caption = f"{caption} {_caption_of_late(data, 'funnel')}".rstrip()
    table = Table("funnel", _("After reading"), caption, columns, rows, row_limit=len(rows))
    return _described(data, table)


def sections(data: ScopeData) -> Table:
    """Returns the categories, each with its readers and the accounts that it is unread for.

    The number of accounts is None where it is not known.
    """
    rows = []
    for section in data.sections:
        unread = None
        # Not known if readers may be visitors, or if some are accounts that are inactive by now.
        if not conf.DOTS.anonymous and section.readers <= data.accounts:
            unread = data.accounts - section.readers
        share = _percent(unread, data.accounts)
        values = (section.category, section.readers, unread, share)
        rows.append(Row(values, {"category": section.subject}))
    caption = _("Readers since the last publication; it is unread for the other active accounts.")
    # These filters stay in force for the other tabs.
    if data.asked.values or data.asked.chosen.keys() & {"category", "author"}:
        caption = f"{caption} {OF_THE_SITE}"
    columns = _columns("section", "readers", "unread", "share")
    empty = _("No model is a category.")
    return Table("sections", _("Unread by category"), caption, columns, rows, empty, row_limit=50)


def views_by_section(data: ScopeData) -> Table:
    """Returns the categories with the numbers of their objects in the period."""
    table = _of_groups("section", data)
    of_two = _("A story in two categories counts for both.")
    caption = f"{table.caption} {of_two}"
    return table._replace(
        name="views-by-section", title=_("Views by category"), caption=caption.strip()
    )


def views_by_author(data: ScopeData) -> Table:
    """Returns the authors with the numbers of their objects in the period."""
    return _of_groups("author", data)._replace(name="views-by-author", title=_("Views by author"))


def views_by_age(data: ScopeData) -> Table:
    """Returns the ages of objects with their numbers in the period, the youngest first."""
    group_rows = data.groups.get("age", ())
    rows_by_name = {row.name: row for row in group_rows}
    total = sum(row.now.views for row in group_rows)
    column_keys = ["age", "views", *_compared_keys_of_groups(data), "share", "reads"]
    rows = []
    for name, label in AGES.items():
        row = rows_by_name.get(name)
        if row is None:
            continue
        numbers = {
            "age": label,
            "share": _percent(row.now.views, total),
            **_numbers_of_group(row, data),
        }
        rows.append(Row([numbers[key] for key in column_keys]))
    return Table(
        name="views-by-age",
        title=_("Views by age"),
        caption=_(
            "By the age that stories had when they were viewed. Views of the last hour may be"
            " missing."
        ),
        columns=_columns(*column_keys),
        rows=rows,
        empty=_empty_of_flushes(data),
    )


def _of_groups(group: Group, data: ScopeData) -> Table:
    """Returns the table of the categories or of the authors, without its name and title."""
    column_keys: list[str] = [group, "views", *_compared_keys_of_groups(data)]
    if not data.asked.is_listed:
        column_keys.append("visitors")
    column_keys.append("reads")
    rows = []
    for row in data.groups.get(group, ()):  # without rows for a filter by a value
        numbers = {
            group: _title_of_group(group, row.name, data),
            "visitors": _visitors_of_group(group, row, data),
            **_numbers_of_group(row, data),
        }
        is_known = (group, row.name) in data.group_titles
        filters = {FILTERS_OF_GROUPS[group]: row.name} if is_known else {}
        rows.append(Row([numbers[key] for key in column_keys], filters))
    caption = _(
        "A view counts for what its story had then, such as its category. Views of the last hour"
        " may be missing."
    )
    if data.asked.is_listed:
        caption = ""
        if data.objects.is_cut:
            caption = _("Among the stories with the most views of all time.")
    return Table(
        name=group,
        title="",
        caption=caption,
        columns=_columns(*column_keys),
        rows=rows,
        empty=_empty_of_flushes(data),
        row_limit=groups.SHOWN,
    )


def _visitors_of_group(group: Group, row: GroupRow, data: ScopeData) -> int | None:
    """Returns the visitors of a category or an author; None if they are not known.

    They are never more than the views. An object that moved, or was deleted, left some views to one
    group and some to another, or to none. Its visitors of that day are not known by the hour, so
    the sketches of both groups have all of them.
    """
    visitors = data.people.by_group.get((group, row.name))
    return None if visitors is None else min(visitors, row.now.views)


def _compared_keys_of_groups(data: ScopeData) -> Sequence[str]:
    """Returns the keys of the columns that compare groups with the period before.

    In a period of a day up to now, the time since the last full flush is too much to be missing.
    """
    is_unfinished_day = data.asked.is_present and data.asked.is_of_a_day
    is_late = is_unfinished_day and not data.asked.is_listed
    return COMPARED if data.is_compared and not is_late else ()


def _numbers_of_group(row: GroupRow, data: ScopeData) -> dict[str, int | None]:
    """Returns the numbers of a group by the keys of their columns."""
    before, change_since = _compared(data, row.compared.views, row.before.views)
    return {**row.now._asdict(), "before": before, "change": change_since}


def _title_of_group(group: Group, name: str, data: ScopeData) -> Any:
    """Returns the row of a category, or the name of an author or of a group without either."""
    special_titles = {NONE: WITHOUT[group], OTHER_GROUPS: _("all others")}
    if name in special_titles:
        return str(special_titles[name])
    return data.group_titles.get((group, name), name)


def still_read(data: ScopeData) -> Table:
    """Returns the objects with the most views in the period that were published long before it."""
    viewed = [entry for entry in data.entries if entry.now.views]
    old = data.objects.old
    if old is not None:
        viewed = [entry for entry in viewed if entry.subject in old]
    objects = _of_objects(data, viewed, "views", *COMPARED, "reads", "trend")
    caption = ngettext(
        "Published more than %(count)s day before the period.",
        "Published more than %(count)s days before the period.",
        STILL_READ_DAYS,
    ) % {"count": exact(STILL_READ_DAYS)}
    # With its day, because in a long period there may be many views of stories as old as that.
    before = data.scope.span.since - STILL_READ_DAYS * buckets.DAY
    empty = _("Nothing that was published before %(day)s was viewed in this period.")
    return Table(
        name="still-read",
        title=_("Still read"),
        caption=f"{caption} {objects.caption}".rstrip(),
        columns=objects.columns,
        rows=objects.rows,
        empty=empty % {"day": date_format(timezone.localtime(before), "DATE_FORMAT")},
        row_limit=2 * ROWS_ON_PAGE,
    )


def _usual_of_low(data: ScopeData) -> Mapping[str, Usual]:
    """Returns what is usual for the objects that may be below it, by subject.

    While Redis is silent, it is not known of what has no view that it has none.
    """
    return {
        subject: data.usual[subject]
        for subject in data.objects.low
        if subject in data.usual and (data.usual[subject].views or not data.is_silent)
    }


def below_usual(data: ScopeData) -> Table:
    """Returns the objects of the period that are below what is usual at their age, lowest first."""
    entries = {entry.subject: entry for entry in data.entries}
    times = {
        subject: usual.times for subject, usual in _usual_of_low(data).items() if subject in entries
    }
    low = [subject for subject in times if word_of(times[subject]) in LOW]
    low.sort(key=lambda subject: (times[subject], -entries[subject].now.views))
    found = [entries[subject] for subject in low]
    objects = _of_objects(data, found, "views", "usual", "trend")
    caption = ngettext(
        "Of what was published in the period; %(count)s at most.",
        "Of what was published in the period; %(count)s at most.",
        CANDIDATES,
    )
    empty = _(
        "Nothing that was published in this period can be compared yet: that takes an hour, and ten"
        " older stories."
    )
    if not data.objects.has_publications:
        empty = _("Nothing was published in this period.")
    elif times:
        empty = _("Nothing that was published in this period is below usual.")
    return Table(
        name="below-usual",
        title=_("Below usual"),
        caption=caption % {"count": exact(CANDIDATES)},
        columns=objects.columns,
        rows=objects.rows,
        empty=empty,
        row_limit=CANDIDATES,
    )


def hardly_read(data: ScopeData) -> Table:
    """Returns the objects that were opened often, and of which the smallest share was read."""
    opened = [entry for entry in data.entries if entry.now.views >= LEAST_OPENED]
    hardly = [entry for entry in opened if _share_read(entry) <= HARDLY_READ]
    hardly.sort(key=lambda entry: (_share_read(entry), -entry.now.views))
    has_reads = data.objects.is_read or any(entry.now.reads for entry in data.entries)
    objects = _of_objects(data, hardly[:CANDIDATES] if has_reads else (), "views", "reads", "ratio")
    at_least = ngettext(
        "%(count)s view or more in the period, and at most a third of them reads.",
        "%(count)s views or more in the period, and at most a third of them reads.",
        LEAST_OPENED,
    ) % {"count": exact(LEAST_OPENED)}
    empty = _("No text was read in this period.")
    if not opened:
        empty = ngettext(
            "No story had %(count)s view in this period.",
            "No story had %(count)s views in this period.",
            LEAST_OPENED,
        ) % {"count": exact(LEAST_OPENED)}
    elif has_reads:
        empty = _("Of each story with that many views, more than a third was read.")
    return Table(
        name="hardly-read",
        title=_("Opened, hardly read"),
        caption=f"{at_least} {objects.caption}".rstrip(),
        columns=objects.columns,
        rows=objects.rows,
        empty=empty,
        row_limit=CANDIDATES,
    )


def _share_read(entry: Entry) -> float:
    """Returns the share of the views that became reads, in per cent."""
    return 100 * min(entry.now.reads, entry.now.views) / entry.now.views


def trending(data: ScopeData) -> Table:
    """Returns the objects with the most views in the last hour."""
    rows = []
    for subject, views in data.trending:
        if subject in data.objects.stored:  # otherwise it was deleted
            rows.append(Row((data.objects[subject], views), {"object": subject}))
    caption = _("Views of the last hour, up to 10 minutes old.")
    empty = _("Not known at the moment.")
    if data.is_whole:
        empty = _("No views in the last hour.")
    title = _("Views of the last hour")
    return Table("trending", title, caption, _columns("title", "views"), rows, empty)


def now(data: ScopeData) -> Table:
    """Returns a table of a single number: the people of the last minutes.

    If filters name the objects, it is the number of their views. The caption has the words behind
    the number.
    """
    count = 0 if data.recent is None else data.recent  # where it is not known, there is a dash
    if data.asked.is_listed:
        title = _("Now")
        caption = ngettext("view in the last five minutes", "views in the last five minutes", count)
    else:
        title = _("People now")
        caption = ngettext("person now", "people now", count)
    return Table("now", title, caption, [Column("now", title)], [Row((data.recent,))])


def not_counted(data: ScopeData) -> Table:
    """Returns the hits of the period that did not count, by reason.

    Redis keeps them for SKIP_HOURS, so earlier ones are missing.
    """
    labels = {name: str(REASONS[name]) for name in _skip_names(data) if name in REASONS}
    return Table(
        name="not-counted",
        title=_("Not counted"),
        caption=_with_robots(data, _kept_hits(data)),
        columns=_columns("reason", *REFUSED),
        rows=_refused(data, labels),
        empty=_empty_refused(
            data, _("No refused hit is known of this period. They are kept for 48 hours.")
        ),
        row_limit=len(REASONS),
    )


def robots(data: ScopeData) -> Table:
    """Returns the hits of robots and assistants in the period, by the names in their user agents.

    Redis keeps them for SKIP_HOURS, so earlier ones are missing.
    """
    special_labels = {
        OTHER: _("other robots and assistants"),
        f"{NAME_PREFIX}none": _("without a name"),
    }
    labels = {}
    for name in _skip_names(data):
        if name.startswith(NAME_PREFIX):
            labels[name] = special_labels.get(name, name.removeprefix(NAME_PREFIX))
    caption = _("By the names that they give themselves: some 50 names an hour.")
    return Table(
        name="robots",
        title=_("Robots and assistants"),
        caption=_with_robots(data, f"{caption} {_kept_hits(data)}"),
        columns=_columns("robot", *REFUSED),
        rows=_refused(data, labels),
        empty=_empty_refused(
            data, _("No refused robot is known of this period. They are kept for 48 hours.")
        ),
        row_limit=2 * ROWS_ON_PAGE,
    )


def _kept_hits(data: ScopeData) -> str:
    """Returns which hits the numbers are of, and since when they are counted if Redis keeps only the
    last hours of the period.
    """
    first_kept_hour = buckets.hour_index(buckets.now()) + 1 - len(data.skips)
    hours = data.asked.span.hours
    if data.asked.is_present or first_kept_hour not in hours[1:]:
        return _("Of the whole site, whatever the filters. They are kept for 48 hours.")
    since = timezone.localtime(buckets.hour_start(first_kept_hour))
    text = _("Only since %(when)s, as they are kept for 48 hours. Of the whole site.")
    return text % {"when": date_format(since, "DATETIME_FORMAT")}


def _with_robots(data: ScopeData, caption: str) -> str:
    """Returns the caption behind how many hits robots and assistants made, whatever told them.

    It is the caption alone where that is not known, as of a period before SKIP_HOURS.
    """
    skips_by_hour = _skips_of_period(data)
    if not skips_by_hour:
        return caption
    hits = sum(skips_by_hour, Counter[Any]())
    count = sum(hits[reason] for reason in OF_ROBOTS)
    text = ngettext(
        "%(count)s hit by robots and assistants in all.",
        "%(count)s hits by robots and assistants in all.",
        count,
    )
    return f"{text % {'count': exact(count)}} {caption}"


def _empty_refused(data: ScopeData, empty: str) -> str:
    """Returns the text of a table without rows: `empty`, unless Redis does not answer."""
    return empty if data.skips else _("Not known at the moment.")


def _skip_names(data: ScopeData) -> list[Any]:
    """Returns the keys of the skips of the period: reasons, `bot:` names of robots, and notices."""
    skip_names: dict[Any, None] = {}
    for skips in _skips_of_period(data):
        skip_names.update(dict.fromkeys(skips))
    return list(skip_names)


def _skips_of_period(data: ScopeData) -> list[Counter[Any]]:
    """Returns the skips of each hour of the period that Redis keeps, the latest hour first."""
    this_hour = buckets.hour_index(buckets.now())
    hours = range(this_hour + 1) if data.asked.is_all_time else data.asked.span.hours
    return _skips_in(data, hours)


def _skips_in(data: ScopeData, hours: range) -> list[Counter[Any]]:
    """Returns the skips of each of these hours (since 1970), the latest hour first."""
    this_hour = buckets.hour_index(buckets.now())
    return [skips for age, skips in enumerate(data.skips) if this_hour - age in hours]


def _refused(data: ScopeData, labels: Mapping[Any, str]) -> list[Row]:
    """Returns a row for each skip that has a label, the most hits first.

    It has the label, the hits, their share, the hits of yesterday and the hits of each hour.
    """
    skips_by_hour = _skips_of_period(data)
    hits = sum(skips_by_hour, Counter[Any]())
    yesterday = Scope.parse({"period": "yesterday"}).span.hours
    hits_yesterday = sum(_skips_in(data, yesterday), Counter[Any]())
    labelled = [name for name in labels if labels[name]]
    labelled.sort(key=lambda name: (-hits[name], labels[name]))
    total = sum(hits[name] for name in labelled)
    rows = []
    for name in labelled:
        # A day without a single skip was lost with Redis, most likely.
        before = hits_yesterday[name] if hits_yesterday else None
        by_hour = [skips[name] for skips in reversed(skips_by_hour)]  # oldest first
        share = _percent(hits[name], total)
        rows.append(Row((labels[name], hits[name], share, before, by_hour)))
    return rows


#: The dimensions that readtrack has functions for. A site's own dimensions have their names only.
DIMENSIONS: Mapping[str, DimensionLabels] = {
    "referrer": DimensionLabels(gettext_lazy("Sources"), gettext_lazy("Source")),
    "channel": DimensionLabels(gettext_lazy("Channels"), gettext_lazy("Channel")),
    "campaign": DimensionLabels(gettext_lazy("Campaigns"), gettext_lazy("Campaign")),
    "country": DimensionLabels(gettext_lazy("Countries"), gettext_lazy("Country")),
    "device": DimensionLabels(gettext_lazy("Devices"), gettext_lazy("Device")),
    "browser": DimensionLabels(gettext_lazy("Browsers"), gettext_lazy("Browser")),
    "os": DimensionLabels(gettext_lazy("Systems"), gettext_lazy("System")),
}
#: The dimensions whose captions say how many views have no known value.
WITH_UNKNOWN = ("referrer", "channel")
#: The names of values for people.
SOURCES: Mapping[str, Any] = {
    sources.DIRECT: pgettext_lazy("where a visitor came from", "Direct"),
    sources.INTERNAL: pgettext_lazy("where a visitor came from", "Internal"),
}
VALUES: Mapping[str, Mapping[str, Any]] = {
    "referrer": SOURCES,
    "channel": {
        **SOURCES,
        "search": gettext_lazy("Search engines"),
        sources.SOCIAL: gettext_lazy("Social networks"),
        sources.MAIL: gettext_lazy("Mail"),
        "assistants": gettext_lazy("Assistants"),
        sources.OTHER_SITES: gettext_lazy("Other sites"),
    },
    "device": {
        "desktop": pgettext_lazy("a device", "Desktop"),
        "phone": pgettext_lazy("a device", "Phone"),
        "tablet": pgettext_lazy("a device", "Tablet"),
    },
    "stage": {
        "view": pgettext_lazy("a stage of the funnel", "Viewed"),
        "click": pgettext_lazy("a stage of the funnel", "Clicked"),
        "convert": pgettext_lazy("a stage of the funnel", "Converted"),
    },
}

#: The functions of the tables by the names of the tables in addresses.
TABLES: Mapping[str, Callable[[ScopeData], Table]] = {
    "over-time": over_time,
    "most-viewed": most_viewed,
    "grew-most": grew_most,
    "trending": trending,
    "now": now,
    "really-read": really_read,
    "funnel": funnel,
    "sections": sections,
    "views-by-section": views_by_section,
    "views-by-author": views_by_author,
    "views-by-age": views_by_age,
    "still-read": still_read,
    "below-usual": below_usual,
    "hardly-read": hardly_read,
    "not-counted": not_counted,
    "robots": robots,
}


#: The tables that are the same with a filter by a value of a dimension.
WITHOUT_VALUES = {"sections", "not-counted", "robots"}
#: The tables that are known with a filter by one value, beside that of its own dimension.
WITH_VALUE = {"over-time", "most-viewed", "grew-most"}


def table_named(name: str, data: ScopeData) -> Table:
    """Returns the table called `name`: one of TABLES, or `by-` and the name of a dimension.

    A table that is not known with the chosen values of dimensions has no rows, and says so.
    """
    if not is_known(name, data.asked):
        return _unknown(name, data)
    return _known(name, data)


def _known(name: str, data: ScopeData) -> Table:
    if name in TABLES:
        return TABLES[name](data)
    return by_dimension(name.removeprefix("by-"), data)


def is_known(name: str, scope: Scope) -> bool:
    """Returns False for a table whose numbers are not stored by the chosen values of dimensions."""
    if not scope.values or name in WITHOUT_VALUES:
        return True
    if scope.is_joint:
        return name == "most-viewed"
    return name in WITH_VALUE or name.removeprefix("by-") in scope.values


def _unknown(name: str, data: ScopeData) -> Table:
    """Returns a table without rows that says that its numbers are not known with the filter."""
    empty = f"{_('Not known for this filter.')} {known_by_value(data)}"
    if name == "now":
        return now(data)._replace(caption=_("Not known for this filter."))
    if name == "over-time":
        return Table(name, _("Views over time"), "", _columns("since", "views"), [], empty)
    table = _known(name, data)
    return table._replace(caption="", rows=[], empty=empty)


def name_of_value(dimension: str, value: str) -> str:
    """Returns a value of a dimension, or a stage of the funnel, as the page shows it.

    What the site names by itself begins with a capital letter.
    """
    names = VALUES.get(dimension, {})
    if value in names:
        return str(names[value])
    if value == OTHER_VALUES:
        return _("Other")
    return value if dimension in DIMENSIONS else f"{value[:1].upper()}{value[1:]}"


def labels_of(dimension: str) -> DimensionLabels:
    """Returns the names of a dimension for people; its own name for one that the site adds."""
    return DIMENSIONS.get(dimension, DimensionLabels(dimension, dimension))
