"""The tables of the dashboard: rows of plain values.

The page shows them as text, and exports give them out as they are.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from readtrack import buckets
from readtrack.conf import conf
from readtrack.dashboard.data import DashboardData, Entry, Hashes
from readtrack.dashboard.objects import MOST
from readtrack.dashboard.scope import Scope
from readtrack.hits.hit import Reason
from readtrack.hits.reading import ENGAGED
from readtrack.numerals import exact
from readtrack.reports.reads import median
from readtrack.sql import popular
from readtrack.store.skips import NAMED, OTHER
from readtrack.texts import title_of

Kind = Literal["text", "number", "share", "change", "seconds", "trend", "time"]

NOT_KNOWN = "\N{EN DASH}"
SHOWN = 10

REASONS: Mapping[Reason, Any] = {
    "bot": gettext_lazy("robot, by its name"),
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
OF_THE_SITE = gettext_lazy("Of the whole site, whatever the filters.")


class Column(NamedTuple):
    """A column: its name in exports, its heading, and the kind of its values."""

    name: str
    heading: Any
    kind: Kind = "number"


#: The columns, by their names or, where two tables have different headings for one, by others.
COLUMNS: Mapping[str, Column] = {
    "since": Column("since", gettext_lazy("Since"), "time"),
    "title": Column("title", gettext_lazy("Title"), "text"),
    "stage": Column("stage", gettext_lazy("Stage"), "text"),
    "section": Column("section", gettext_lazy("Category"), "text"),
    "reason": Column("reason", gettext_lazy("Reason"), "text"),
    "robot": Column("robot", gettext_lazy("Robot"), "text"),
    "views": Column("views", gettext_lazy("Views")),
    "growth": Column("growth", gettext_lazy("More views")),
    "visitors": Column("visitors", gettext_lazy("New visitors")),
    "reads": Column("reads", gettext_lazy("Reads")),
    "count": Column("count", gettext_lazy("Passes")),
    "hits": Column("hits", gettext_lazy("Hits")),
    "readers": Column("readers", gettext_lazy("Readers")),
    "unread": Column("unread", gettext_lazy("Unread for")),
    "before": Column("before", pgettext_lazy("the number of the period before", "Before")),
    "views_before": Column("before", gettext_lazy("Views, the period before")),
    "yesterday": Column("yesterday", gettext_lazy("Yesterday")),
    "change": Column("change", pgettext_lazy("of a number", "Change"), "change"),
    "share": Column("share", gettext_lazy("Share"), "share"),
    "rate": Column("rate", gettext_lazy("Of the first stage"), "share"),
    "step_rate": Column("step_rate", gettext_lazy("Of the stage before"), "share"),
    "ratio": Column("ratio", gettext_lazy("Read to the end"), "share"),
    "median": Column("median", gettext_lazy("Median time"), "seconds"),
    "trend": Column("trend", gettext_lazy("Trend"), "trend"),
    "by_hour": Column("trend", gettext_lazy("By the hour"), "trend"),
    "notes": Column("notes", gettext_lazy("Notes"), "text"),
}
COMPARED = ("before", "change")
REFUSED = ("hits", "share", "yesterday", "by_hour")


class Row(NamedTuple):
    """A row: its values, and filters that name it.

    An object is the first value; to show its title may cost queries.
    """

    values: Sequence[Any]
    filters: Mapping[str, str] = {}


class Table(NamedTuple):
    """A table. `caption` says what is counted, and `empty` stands in the place of no rows."""

    name: str
    title: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    empty: str = ""
    shown: int = SHOWN  # rows on the page

    def values(self, name: str) -> list[Any]:
        """Returns the values of a column."""
        names = [column.name for column in self.columns]
        index = names.index(name)
        return [row.values[index] for row in self.rows]


def change(now: int, before: int) -> int | None:
    """Returns the change in per cent; None where there was nothing before."""
    return round(100 * (now - before) / before) if before else None


def _percent(part: int | None, whole: int) -> float | None:
    return 100 * part / whole if whole and part is not None else None


def _columns(*names: str) -> list[Column]:
    return [COLUMNS[name] for name in names]


def text(value: Any, kind: Kind) -> str:
    """Returns a value as the page shows it."""
    if value is None:
        return NOT_KNOWN
    if kind == "number":
        return exact(value)
    if kind == "share":
        return _("%(number)s %%") % {"number": exact(round(value))}
    if kind == "change":
        sign = "+" if value > 0 else ""
        return _("%(number)s %%") % {"number": f"{sign}{exact(round(value))}"}
    if kind == "seconds":
        return _("%(seconds)s s") % {"seconds": exact(value)}
    if kind == "trend":
        return _small_line(value)
    return title_of(value)


def _small_line(values: Sequence[int]) -> str:
    """Returns the points of a small line, 60 by 16."""
    most = max([1, *values])
    last = max(1, len(values) - 1)
    points = []
    for index, value in enumerate(values):
        points.append(f"{60 * index / last:.1f},{15 - 14 * value / most:.1f}")
    return " ".join(points)


def over_time(data: DashboardData) -> Table:
    """Returns the numbers of the chart by point, with the views before."""
    assert data.chart is not None  # noqa: S101 - it is loaded for this table
    not_known = (None, None, None)
    views_before: list[int | None] = [point.views for point in data.chart.points_before]
    views_before += [None] * len(data.starts)
    notes = _notes_by_point(data)
    rows = []
    for index, (start, point) in enumerate(zip(data.starts, data.chart.points, strict=False)):
        counts = point if start <= data.chart.known_until else not_known
        values = (start.isoformat(), *counts, views_before[index], "; ".join(notes[index]))
        rows.append(Row(values))
    columns = _columns("since", "views", "visitors", "reads", "views_before", "notes")
    return Table("over-time", _("Views over time"), "", columns, rows, shown=len(rows))


def _notes_by_point(data: DashboardData) -> list[list[str]]:
    """Returns the notes at the first hour of their day, or at the week or month of it."""
    assert data.chart is not None  # noqa: S101
    days = [timezone.localtime(start).date() for start in data.starts]
    notes: list[list[str]] = [[] for _ in days]
    for day, note in data.chart.notes.items():
        index = bisect_left(days, day)
        if day not in days:
            index -= 1
        notes[index].append(note)
    return notes


def _of_objects(
    data: DashboardData, entries: Iterable[Entry], *names: str, compared: str = "views"
) -> tuple[str, list[Column], list[Row]]:
    """Returns which objects were looked at (if not all), the columns and the rows.

    `compared` is the number that is compared with the period before.
    """
    if not data.is_compared:
        names = tuple(name for name in names if name not in COMPARED)
    rows = []
    for entry in islice(entries, data.shown):
        numbers = _numbers_of(data, entry, compared)
        values = [numbers[name] for name in names]
        rows.append(Row((data.objects[entry.subject], *values), {"object": entry.subject}))
    among = _("Among the objects with the most views of all time.") if data.objects.is_cut else ""
    return among, _columns("title", *names), rows


def _numbers_of(data: DashboardData, entry: Entry, compared: str) -> dict[str, Any]:
    """Returns the numbers of an object by column."""
    now = getattr(entry.now, compared)
    before = getattr(entry.before, compared)
    reading = data.hashes.get(("reading", entry.subject), Counter())
    first_point = data.gap + 1
    points = range(first_point, first_point + len(data.starts))
    return {
        **entry.now._asdict(),
        "growth": entry.growth,
        "before": before,
        "change": change(now, before),
        "trend": [entry.gained[0].get(index, 0) for index in points],
        "ratio": _percent(min(entry.now.reads, entry.now.views), entry.now.views),
        "median": median(reading) if reading[ENGAGED] else None,
    }


def most_viewed(data: DashboardData) -> Table:
    """Returns the objects with the most views in the period.

    With chosen values of dimensions the views are those of all time.
    """
    if data.asked.values:
        return _most_viewed_with_values(data)
    viewed = (entry for entry in data.entries if entry.now.views)
    caption, columns, rows = _of_objects(
        data, viewed, "views", *COMPARED, "visitors", "reads", "trend"
    )
    empty = _("No views in this period.")
    return Table("most-viewed", _("Most viewed"), caption, columns, rows, empty)


def _most_viewed_with_values(data: DashboardData) -> Table:
    values = data.asked.values
    columns = _columns("title")
    columns += [Column(name, value) for name, value in values.items()]
    rows = []
    for entry in data.entries:
        counts = []
        for name, value in values.items():
            by_value = data.hashes.get((f"views:{name}", entry.subject), Counter())
            counts.append(by_value[value])
        if all(counts):
            rows.append(Row((data.objects[entry.subject], *counts), {"object": entry.subject}))
    rows.sort(key=lambda row: row.values[1], reverse=True)
    caption = _(
        "Views of all time with each value, of the objects that were viewed most in the period. "
        "The values of single objects are stored without a day."
    )
    empty = _("No views with these values.")
    return Table("most-viewed", _("Most viewed"), caption, columns, rows, empty)


def grew_most(data: DashboardData) -> Table:
    """Returns the objects with the most views more than in the period before."""
    grown = (entry for entry in data.entries if entry.growth > 0)
    caption, columns, rows = _of_objects(data, grown, "growth", "views", *COMPARED, "trend")
    # The list of all time has no first day, and where it is not cut it has all objects.
    is_of_list = not data.asked.is_listed and data.objects.days != popular.EVER
    if not caption and is_of_list:
        first_day = timezone.localtime(buckets.now() - data.objects.days * buckets.DAY)
        caption = _("Among the %(count)s objects with the most views since %(since)s.") % {
            "count": exact(MOST),
            "since": date_format(first_day, "DATE_FORMAT"),
        }
    empty = _("Nothing was viewed more often than in the period before.")
    return Table("grew-most", _("Grew most"), caption, columns, rows, empty)


def by_dimension(name: str, data: DashboardData) -> Table:
    """Returns the table of a dimension: the views by its values."""
    counts, *earlier = [_views_by_value(hashes, name) for hashes in data.gains]
    total = counts.total()
    title, heading = words_of(name)
    compared = COMPARED if earlier else ()
    columns = [Column(name, heading, "text"), *_columns("views", *compared, "share")]
    rows = []
    for value, count in counts.most_common():
        before = _before_and_change(count, [views[value] for views in earlier])
        values = (value, count, *before, _percent(count, total))
        rows.append(Row(values, {name: value}))
    return _summed(data, Table(f"by-{name}", title, "", columns, rows))


def _views_by_value(hashes: Hashes, dimension: str) -> Counter[str]:
    """Returns the views by the values of a dimension, of all subjects together."""
    views = Counter[str]()
    for (kind, _subject), counts in hashes.items():
        if kind == f"views:{dimension}":
            views += counts
    return views


def _before_and_change(count: int, earlier: Sequence[int]) -> list[int | None]:
    """Returns the count of the period before and the change.

    It is empty if there is no such period.
    """
    values: list[int | None] = []
    for before in earlier:
        values += [before, change(count, before)]
    return values


def _summed(data: DashboardData, table: Table) -> Table:
    """Returns the table of a breakdown or a funnel, with what its counts are about."""
    title = table.title
    caption = _("Of all objects in the period; the last minutes may be missing.")
    empty = _("No views in this period.")
    if not data.has_gains:
        title = of_all_time(title)
        count = len(data.objects.first)
        caption = ngettext(
            "Views of all time of the most viewed object of the period.",
            "Views of all time of the %(count)s most viewed objects of the period together.",
            count,
        ) % {"count": exact(count)}
        empty = _("Nothing yet.")
    if "object" in data.asked.chosen:
        caption = _("Views of all time.")
    return table._replace(title=title, caption=f"{caption} {table.caption}".rstrip(), empty=empty)


def of_all_time(title: str) -> str:
    """Returns the title of a table whose numbers are of all time, whatever the period."""
    return f"{title} ({_('All time')})"


def really_read(data: DashboardData) -> Table:
    """Returns the objects with the most reads in the period.

    Those that were only begun in it come last.
    """
    read = (entry for entry in data.entries if entry.now.reads or _is_begun(data, entry))
    among, columns, rows = _of_objects(
        data, read, "reads", *COMPARED, "views", "ratio", "median", compared="reads"
    )
    caption = _("In the period; the median time is that of all time.")
    empty = _("No text was read in this period.")
    return Table(
        "really-read", _("Really read"), f"{caption} {among}".rstrip(), columns, rows, empty
    )


def _is_begun(data: DashboardData, entry: Entry) -> bool:
    """Returns True if somebody began to read the object.

    The time of a single object is worth a row in any period.
    """
    is_in_period = entry.now.views or "object" in data.asked.chosen
    reading = data.hashes.get(("reading", entry.subject), Counter())
    return bool(is_in_period and reading[ENGAGED])


def funnel(data: DashboardData) -> Table:
    """Returns the stages of the funnels of all objects together.

    A stage counts once in a visitor's pass.
    """
    stages, *earlier = data.stages
    rows = []
    for index, stage in enumerate(stages):
        if not stages[0].count:  # nobody has entered it
            break
        before = _before_and_change(stage.count, [period[index].count for period in earlier])
        rates = (100 * stage.rate, 100 * stage.step_rate)
        rows.append(Row((stage.name, stage.count, *before, *rates)))
    compared = COMPARED if earlier else ()
    columns = _columns("stage", "count", *compared, "rate", "step_rate")
    caption = _("A visitor who comes again after an hour makes another pass.")
    return _summed(data, Table("funnel", _("Funnel"), caption, columns, rows, shown=len(rows)))


def sections(data: DashboardData) -> Table:
    """Returns the categories with their readers.

    With them is the number of accounts that a category is unread for.
    """
    rows = []
    for section in data.sections:
        unread = None
        # Readers may be visitors, or accounts that are inactive by now.
        if not conf.ANONYMOUS_READERS and section.readers <= data.accounts:
            unread = data.accounts - section.readers
        share = _percent(unread, data.accounts)
        values = (section.category, section.readers, unread, share)
        rows.append(Row(values, {"category": section.subject}))
    caption = _("Readers since the last publication; it is unread for the other active accounts.")
    # These filters stay in force for the other tabs.
    if data.asked.chosen.keys() & {"category", "author"}:
        caption = f"{caption} {OF_THE_SITE}"
    columns = _columns("section", "readers", "unread", "share")
    empty = _("No model is a category.")
    return Table("sections", _("Categories"), caption, columns, rows, empty, shown=50)


def trending(data: DashboardData) -> Table:
    """Returns the objects with the most views in the last hour."""
    rows = []
    for subject, views in data.trending:
        if subject in data.objects.stored:  # else it is deleted
            rows.append(Row((data.objects[subject], views), {"object": subject}))
    caption = _("Views of the last hour, up to 10 minutes old.")
    empty = _("No views in the last hour.") if data.is_whole else _("Not known at the moment.")
    return Table("trending", _("Trending now"), caption, _columns("title", "views"), rows, empty)


def now(data: DashboardData) -> Table:
    """Returns the number of people of the last minutes, which is shown alone.

    Of objects that filters name it is the number of views.
    """
    title = _("People now")
    caption = _("visitors in the last five minutes")
    if data.asked.is_listed:
        title = _("Now")
        caption = _("views in the last five minutes")
    return Table("now", title, caption, [Column("now", title)], [Row((data.recent,))])


def not_counted(data: DashboardData) -> Table:
    """Returns the hits of the period that did not count, by reason.

    They are of the hours that Redis keeps.
    """
    labels = {name: str(REASONS[name]) for name in _skip_names(data) if name in REASONS}
    return Table(
        name="not-counted",
        title=_("Not counted"),
        caption=_("Of the whole site, whatever the filters. They are kept for 48 hours."),
        columns=_columns("reason", *REFUSED),
        rows=_refused(data, labels),
        empty=_empty_refused(
            data, _("No refused hit is known of this period. They are kept for 48 hours.")
        ),
        shown=len(REASONS),
    )


def robots(data: DashboardData) -> Table:
    """Returns the hits of robots in the period, by the names in their user agents.

    They are of the hours that Redis keeps.
    """
    titles = {OTHER: _("other robots"), f"{NAMED}none": _("without a name")}
    labels = {}
    for name in _skip_names(data):
        if name.startswith(NAMED):
            labels[name] = titles.get(name, name.removeprefix(NAMED))
    caption = _("By the names that they give themselves: some 50 names an hour.")
    return Table(
        name="robots",
        title=_("Robots"),
        caption=f"{caption} {OF_THE_SITE}",
        columns=_columns("robot", *REFUSED),
        rows=_refused(data, labels),
        empty=_empty_refused(
            data, _("No refused robot is known of this period. They are kept for 48 hours.")
        ),
        shown=2 * SHOWN,
    )


def _empty_refused(data: DashboardData, words: str) -> str:
    return words if data.skips else _("Not known at the moment.")


def _skip_names(data: DashboardData) -> list[Any]:
    """Returns reasons, names of robots and notices of the period, latest hour first."""
    return [*dict.fromkeys(name for hour in _skips_of_period(data) for name in hour)]


def _skips_of_period(data: DashboardData) -> list[Counter[Any]]:
    """Returns the skips of the hours of the period that Redis keeps, the latest hour first."""
    this_hour = buckets.hour_index(buckets.now())
    hours = data.asked.span.hours if data.asked.before else range(this_hour + 1)
    return _skips_in(data, hours)


def _skips_in(data: DashboardData, hours: range) -> list[Counter[Any]]:
    this_hour = buckets.hour_index(buckets.now())
    return [skips for back, skips in enumerate(data.skips) if this_hour - back in hours]


def _refused(data: DashboardData, labels: Mapping[Any, str]) -> list[Row]:
    """Returns a row for each skip that has a label, the most hits first.

    It has the hits, their share, the hits of yesterday and those of each hour.
    """
    hours = _skips_of_period(data)
    yesterday = Scope.parse({"period": "yesterday"}).span.hours
    hits = sum(hours, Counter[Any]())
    hits_yesterday = sum(_skips_in(data, yesterday), Counter[Any]())
    names = [name for name in labels if labels[name]]
    total = sum(hits[name] for name in names)
    rows = []
    for name in sorted(names, key=lambda name: (-hits[name], labels[name])):
        # A day without any was lost with Redis, most likely.
        before = hits_yesterday[name] if hits_yesterday else None
        by_hour = [hour[name] for hour in reversed(hours)]
        share = _percent(hits[name], total)
        rows.append(Row((labels[name], hits[name], share, before, by_hour)))
    return rows


DIMENSIONS: Mapping[str, tuple[Any, Any]] = {
    "referrer": (gettext_lazy("Sources"), gettext_lazy("Source")),
    "country": (gettext_lazy("Countries"), gettext_lazy("Country")),
    "device": (gettext_lazy("Devices"), gettext_lazy("Device")),
    "browser": (gettext_lazy("Browsers"), gettext_lazy("Browser")),
    "os": (gettext_lazy("Systems"), gettext_lazy("System")),
}

#: The functions of the tables: `over_time` makes `over-time`.
TABLES: Mapping[str, Callable[[DashboardData], Table]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        over_time,
        most_viewed,
        grew_most,
        trending,
        now,
        really_read,
        funnel,
        sections,
        not_counted,
        robots,
    )
}


def table_named(name: str, data: DashboardData) -> Table:
    """Returns one of TABLES, or the one of a dimension: `by-` and its name."""
    if name in TABLES:
        return TABLES[name](data)
    return by_dimension(name.removeprefix("by-"), data)


def words_of(dimension: str) -> tuple[Any, Any]:
    """Returns the title of a dimension's table, and the dimension's name for people."""
    return DIMENSIONS.get(dimension, (dimension, dimension))
