"""The tables of the dashboard: rows of plain values, which the page shows and exports give out as
they are.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from time import monotonic
from typing import Any, Literal, NamedTuple

from django.contrib.auth import get_user_model
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from readtrack import buckets, subjects
from readtrack.conf import conf
from readtrack.dashboard.numbers import Entry, Numbers
from readtrack.dashboard.objects import MOST
from readtrack.dashboard.scope import Scope
from readtrack.hits.hit import Reason
from readtrack.hits.reading import ENGAGED
from readtrack.numerals import exact
from readtrack.reports.reads import median
from readtrack.sql import history, popular, runs
from readtrack.store import keys, read_state
from readtrack.store.circuit import fail_open
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
    """A row: its values, and filters that name it. An object is the first value; to show its title
    may cost queries.
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
        place = [column.name for column in self.columns].index(name)
        return [row.values[place] for row in self.rows]


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
    if kind in ("share", "change"):
        sign = "+" if kind == "change" and value > 0 else ""
        return _("%(number)s %%") % {"number": f"{sign}{exact(round(value))}"}
    if kind == "seconds":
        return _("%(seconds)s s") % {"seconds": exact(value)}
    if kind == "trend":  # the points of a small line, 60 by 16
        most, last = max([1, *value]), max(1, len(value) - 1)
        return " ".join(
            f"{60 * place / last:.1f},{15 - 14 * one / most:.1f}" for place, one in enumerate(value)
        )
    return title_of(value)


def over_time(found: Numbers) -> Table:
    """Returns the numbers of the chart: by point, with the views of the point of the period before."""
    good = None if found.is_live else runs.last_good()
    known_until = buckets.now() if found.is_live else good.began if good else buckets.hour_start(0)
    before, points = found.points
    earlier = [point.views for point in before] + [None] * len(points)
    days = [timezone.localtime(start).date() for start in found.starts]
    notes: list[list[str]] = [[] for _ in days]
    for day, words in found.flush_and_notes[1].items():
        # The first hour of the day, or the week or month that the day is in.
        notes[bisect_left(days, day) if day in days else bisect_left(days, day) - 1].append(words)
    rows = [
        Row(
            (
                start.isoformat(),
                *(point if start <= known_until else (None, None, None)),
                views,
                "; ".join(texts),
            )
        )
        for start, point, views, texts in zip(found.starts, points, earlier, notes, strict=False)
    ]
    columns = _columns("since", "views", "visitors", "reads", "views_before", "notes")
    return Table("over-time", _("Views over time"), "", columns, rows, shown=len(rows))


def _of_objects(
    found: Numbers, some: Iterable[Entry], *names: str, of: str = "views"
) -> tuple[str, list[Column], list[Row]]:
    """Returns which objects were looked at (if not all), the columns and rows; `of` is the number
    that is compared.
    """
    names = tuple(name for name in names if found.is_compared or name not in COMPARED)
    places = range(found.gap + 1, found.gap + 1 + len(found.starts))  # of the chart's points
    rows = []
    for one in islice(some, found.shown):
        now, before = getattr(one.now, of), getattr(one.before, of)
        reading = found.hashes.get(("reading", one.subject), Counter())
        numbers = {
            **one.now._asdict(),
            "growth": one.growth,
            "before": before,
            "change": change(now, before),
            "trend": [one.gained[0].get(place, 0) for place in places] if "trend" in names else (),
            "ratio": _percent(min(one.now.reads, one.now.views), one.now.views),
            "median": median(reading) if reading[ENGAGED] else None,
        }
        rows.append(
            Row(
                (found.objects[one.subject], *(numbers[name] for name in names)),
                {"object": one.subject},
            )
        )
    among = _("Among the objects with the most views of all time.") if found.objects.is_cut else ""
    return among, _columns("title", *names), rows


def most_viewed(found: Numbers) -> Table:
    """Returns the objects with the most views in the period; of a chosen value of a dimension,
    those of all time.
    """
    if not (values := found.scope.values):
        viewed = (one for one in found.entries if one.now.views)
        table = _of_objects(found, viewed, "views", *COMPARED, "visitors", "reads", "trend")
        return Table("most-viewed", _("Most viewed"), *table, _("No views in this period."))
    columns = [*_columns("title"), *(Column(name, value) for name, value in values.items())]
    rows = []
    for one in found.entries:
        counts = [
            found.hashes.get((f"views:{name}", one.subject), Counter())[value]
            for name, value in values.items()
        ]
        rows += (
            [Row((found.objects[one.subject], *counts), {"object": one.subject})]
            if all(counts)
            else []
        )
    rows.sort(key=lambda row: row.values[1], reverse=True)
    caption = _(
        "Views of all time with each value, of the objects that were viewed most in the period. The values of single "
        "objects are stored without a day."
    )
    return Table(
        "most-viewed", _("Most viewed"), caption, columns, rows, _("No views with these values.")
    )


def grew_most(found: Numbers) -> Table:
    """Returns the objects with the most views more than in the period before."""
    grown = (one for one in found.entries if one.growth > 0)
    caption, columns, rows = _of_objects(found, grown, "growth", "views", *COMPARED, "trend")
    # The list of all time has no first day, and where it is not cut it has all objects.
    if not caption and not found.asked.is_listed and found.objects.days != popular.EVER:
        since = date_format(
            timezone.localtime(buckets.now() - found.objects.days * buckets.DAY), "DATE_FORMAT"
        )
        words = {"count": exact(MOST), "since": since}
        caption = _("Among the %(count)s objects with the most views since %(since)s.") % words
    empty = _("Nothing was viewed more often than in the period before.")
    return Table("grew-most", _("Grew most"), caption, columns, rows, empty)


def by_dimension(name: str, found: Numbers) -> Table:
    """Returns the table of a dimension: the views by its values."""
    named = [
        [counts for of, counts in some.items() if of[0] == f"views:{name}"]
        for some in found.summands
    ]
    counts, *earlier = (sum(some, Counter[str]()) for some in named)
    (title, heading), total = words_of(name), counts.total()
    columns = [
        Column(name, heading, "text"),
        *_columns("views", *COMPARED[: 2 * len(earlier)], "share"),
    ]
    rows = []
    for value, count in counts.most_common():
        compared = [number for one in earlier for number in (one[value], change(count, one[value]))]
        rows.append(Row((value, count, *compared, _percent(count, total)), {name: value}))
    return _summed(found, Table(f"by-{name}", title, "", columns, rows))


def _summed(found: Numbers, table: Table) -> Table:
    """Returns the table of a breakdown or a funnel with the words that tell what its counts are
    about.
    """
    title, empty = table.title, _("No views in this period.")
    caption = _("Of all objects in the period; the last minutes may be missing.")
    if not found.has_gains:
        count = len(found.objects.first)
        caption = ngettext(
            "Views of all time of the most viewed object of the period.",
            "Views of all time of the %(count)s most viewed objects of the period together.",
            count,
        ) % {"count": exact(count)}
        title, empty = of_all_time(title), _("Nothing yet.")
    if "object" in found.asked.chosen:
        caption = _("Views of all time.")
    return table._replace(title=title, caption=f"{caption} {table.caption}".rstrip(), empty=empty)


def of_all_time(title: str) -> str:
    """Returns the title of a table whose numbers are of all time, whatever the period."""
    return f"{title} ({_('All time')})"


def really_read(found: Numbers) -> Table:
    """Returns the objects with the most reads in the period, and those that were only begun in it."""
    none, is_one = (
        Counter[str](),
        "object" in found.asked.chosen,
    )  # whose median time is worth a row in any period
    read = (
        one
        for one in found.entries
        if one.now.reads
        or ((one.now.views or is_one) and found.hashes.get(("reading", one.subject), none)[ENGAGED])
    )
    among, columns, rows = _of_objects(
        found, read, "reads", *COMPARED, "views", "ratio", "median", of="reads"
    )
    caption, empty = (
        _("In the period; the median time is that of all time."),
        _("No text was read in this period."),
    )
    return Table(
        "really-read", _("Really read"), f"{caption} {among}".rstrip(), columns, rows, empty
    )


def funnel(found: Numbers) -> Table:
    """Returns the stages of the funnels of all objects together. A stage counts once in a visitor's
    pass.
    """
    some, *before = found.funnel
    rows = []
    for one, *earlier in zip(some, *before, strict=True) if some[0].count else ():
        compared = [
            number for stage in earlier for number in (stage.count, change(one.count, stage.count))
        ]
        rows.append(Row((one.name, one.count, *compared, 100 * one.rate, 100 * one.step_rate)))
    columns = _columns("stage", "count", *COMPARED[: 2 * len(before)], "rate", "step_rate")
    caption = _("A visitor who comes again after an hour makes another pass.")
    return _summed(found, Table("funnel", _("Funnel"), caption, columns, rows, shown=len(rows)))


def sections(found: Numbers) -> Table:
    """Returns the categories with their readers, and the number of accounts that they are unread
    for.
    """
    rows, models = [], subjects.read_state_models()
    if "model" in found.asked.chosen:
        links = [link for model in found.asked.models for link in subjects.news_links(model)]
        linked = {subjects.owner(link.related_model) for link in links}
        models = [model for model in models if model in linked]
    found_rows = [row for model in models for row in model._default_manager.order_by("pk")[:MOST]]
    categories = {subjects.subject_of(row): row for row in found_rows}
    if categories:
        # With "sequence" it waits long, for a server that does not answer, too.
        readers = fail_open(read_state.count_readers, {}, [*categories]) if found.is_whole else {}
        if not readers:
            stored = history.newest_readers([*map(subjects.subject_column, categories)])
            readers = {
                subject: stored.get(subjects.subject_column(subject), 0) for subject in categories
            }
        accounts = _accounts(keys.prefix(), monotonic() // 300)
        for subject, row in categories.items():
            count = readers.get(subject, 0)
            # Readers may be visitors, or accounts that are inactive by now.
            unread = None if conf.ANONYMOUS_READERS or count > accounts else accounts - count
            rows.append(
                Row((row, count, unread, _percent(unread, accounts)), {"category": subject})
            )
        rows.sort(key=lambda row: row.values[1])
    caption = _("Readers since the last publication; it is unread for the other active accounts.")
    if found.asked.chosen.keys() & {"category", "author"}:  # which stay in force for the other tabs
        caption = f"{caption} {OF_THE_SITE}"
    columns, empty = _columns("section", "readers", "unread", "share"), _("No model is a category.")
    return Table("sections", _("Categories"), caption, columns, rows, empty, shown=50)


@lru_cache(maxsize=100)  # because to count millions takes long
def _accounts(tenant: str, when: float) -> int:
    """Returns the number of active accounts, of one tenant and of five minutes."""
    return get_user_model()._default_manager.filter(is_active=True).count()


def trending(found: Numbers) -> Table:
    """Returns the objects with the most views in the last hour."""
    viewed = [
        (name, views) for name, views in found.trending if name in found.objects.stored
    ]  # the others are deleted
    rows = [Row((found.objects[name], views), {"object": name}) for name, views in viewed]
    caption = _("Views of the last hour, up to 10 minutes old.")
    empty = _("No views in the last hour.") if found.is_whole else _("Not known at the moment.")
    return Table("trending", _("Trending now"), caption, _columns("title", "views"), rows, empty)


def now(found: Numbers) -> Table:
    """Returns the number of people of the last minutes; of objects that filters name, the views. It
    is shown alone.
    """
    title, caption = _("People now"), _("visitors in the last five minutes")
    if found.asked.is_listed:
        title, caption = _("Now"), _("views in the last five minutes")
    return Table("now", title, caption, [Column("now", title)], [Row((found.recent,))])


def not_counted(found: Numbers) -> Table:
    """Returns the hits of the period that did not count, by reason; of the hours that Redis keeps."""
    caption = _("Of the whole site, whatever the filters. They are kept for 48 hours.")
    empty = _("No refused hit is known of this period. They are kept for 48 hours.")
    table = Table(
        "not-counted",
        _("Not counted"),
        caption,
        _columns("reason", *REFUSED),
        [],
        empty,
        len(REASONS),
    )
    return _refused(found, table, REASONS.get)


def robots(found: Numbers) -> Table:
    """Returns the hits of robots in the period, by the names in their user agents; of the hours
    that Redis keeps.
    """
    others = {OTHER: _("other robots"), f"{NAMED}none": _("without a name")}
    caption = _("By the names that they give themselves: some 50 names an hour.")
    empty = _("No refused robot is known of this period. They are kept for 48 hours.")
    table = Table(
        "robots",
        _("Robots"),
        f"{caption} {OF_THE_SITE}",
        _columns("robot", *REFUSED),
        [],
        empty,
        2 * SHOWN,
    )
    return _refused(
        found,
        table,
        lambda name: name.startswith(NAMED) and others.get(name, name.removeprefix(NAMED)),
    )


def _refused(found: Numbers, table: Table, label: Callable[[Any], Any]) -> Table:
    """Returns the table with the skips that have a label: their hits, share, hits of yesterday and
    hours.
    """
    now, yesterday = buckets.hour_index(buckets.now()), Scope.parse({"period": "yesterday"})
    spans = found.asked.span.hours if found.asked.before else range(now + 1), yesterday.span.hours
    hours, of_yesterday = (
        [one for back, one in enumerate(found.skips) if now - back in span] for span in spans
    )
    sums, earlier = sum(hours, Counter[Any]()), sum(of_yesterday, Counter[Any]())
    some = {name: str(words) for name in sums if (words := label(name))}
    total = sum(sums[name] for name in some)
    rows = []
    for name in sorted(some, key=lambda name: (-sums[name], some[name])):
        before = (
            earlier[name] if earlier else None
        )  # a day without any was lost with Redis, most likely
        by_hour = [one[name] for one in hours[::-1]]
        rows.append(Row((some[name], sums[name], _percent(sums[name], total), before, by_hour)))
    return table._replace(
        rows=rows, empty=table.empty if found.skips else _("Not known at the moment.")
    )


DIMENSIONS: Mapping[str, tuple[Any, Any]] = {
    "referrer": (gettext_lazy("Sources"), gettext_lazy("Source")),
    "country": (gettext_lazy("Countries"), gettext_lazy("Country")),
    "device": (gettext_lazy("Devices"), gettext_lazy("Device")),
    "browser": (gettext_lazy("Browsers"), gettext_lazy("Browser")),
    "os": (gettext_lazy("Systems"), gettext_lazy("System")),
}

#: The functions of the tables: `over_time` makes `over-time`.
TABLES: Mapping[str, Callable[[Numbers], Table]] = {
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


def table_named(name: str, found: Numbers) -> Table:
    """Returns one of TABLES, or the one of a dimension: `by-` and its name."""
    return TABLES[name](found) if name in TABLES else by_dimension(name.removeprefix("by-"), found)


def words_of(dimension: str) -> tuple[Any, Any]:
    """Returns the title of a dimension's table, and the dimension's name for people."""
    return DIMENSIONS.get(dimension, (dimension, dimension))
