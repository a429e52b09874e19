"""The tables of the dashboard: rows of plain values, which the page shows and exports give out as they are."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import monotonic
from typing import Any, Literal, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from readtrack import buckets
from readtrack.conf import conf, log_failure
from readtrack.dashboard.numbers import Entry, Numbers
from readtrack.dashboard.objects import MOST
from readtrack.dashboard.scope import Scope
from readtrack.hits.hit import Reason
from readtrack.hits.reading import ENGAGED
from readtrack.numerals import exact
from readtrack.reports.breakdowns import median
from readtrack.sql import history, popular
from readtrack.store import keys, read_state
from readtrack.store.circuit import fail_open
from readtrack.store.skips import NAMED, OTHER
from readtrack.subjects import news_links, owner, read_state_models, subject_column, subject_of

Kind = Literal["text", "number", "share", "change", "seconds", "trend", "time"]

NOT_KNOWN = "\N{EN DASH}"
SHOWN = 10  # rows of a table on the page
YESTERDAY = {"period": "yesterday"}
MANY = 10_000  # active accounts, whose number is kept
REMEMBERED = 300  # seconds

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


class Column(NamedTuple):
    """A column: its name in exports, its heading, and the kind of its values."""

    name: str
    heading: str
    kind: Kind = "number"


class Row(NamedTuple):
    """A row: its values, and the filters that name it. An object is the first of its values.

    The object's title and address are made where they are shown, because they may cost queries.
    """

    values: Sequence[Any]
    filters: Mapping[str, str] = {}

    @property
    def url(self) -> str:
        """Returns the address of the object's page on the site; "" for a row without."""
        return address_of(self.values[0])


@dataclass(frozen=True)
class Table:
    """A table. `caption` says what is counted, and `empty` stands in the place of no rows."""

    name: str
    title: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    empty: str = ""
    shown: int = SHOWN
    is_of_period: bool = True

    def values(self, name: str) -> list[Any]:
        """Returns the values of a column."""
        place = [column.name for column in self.columns].index(name)
        return [row.values[place] for row in self.rows]

    @property
    def head(self) -> Sequence[Row]:
        """Returns the rows that the page shows."""
        return self.rows[: self.shown]


def change(now: int, before: int) -> int | None:
    """Returns the change in per cent; None where there was nothing before."""
    return round(100 * (now - before) / before) if before else None


def _compared(now: int, before: int | None) -> tuple[int | None, ...]:
    return () if before is None else (before, change(now, before))


def _columns_before(*, is_compared: bool) -> list[Column]:
    names = (pgettext("the number of the period before", "Before"), pgettext("of a number", "Change"))
    return [Column("before", names[0]), Column("change", names[1], "change")] if is_compared else []


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def text(value: Any, kind: Kind) -> str:
    """Returns a value as the page shows it."""
    if value is None:
        return NOT_KNOWN
    if kind == "number":
        return exact(value)
    if kind == "share":
        return _("%(number)s %%") % {"number": exact(round(value))}
    if kind == "change":
        return _("%(number)s %%") % {"number": f"{'+' if value > 0 else ''}{exact(value)}"}
    if kind == "seconds":
        return _("%(seconds)s s") % {"seconds": exact(value)}
    return "" if kind == "trend" else title_of(value)


def over_time(found: Numbers) -> Table:
    """Returns the numbers of the chart: by point, with the views of the point of the period before."""
    columns = [
        Column("since", _("Since"), "time"),
        Column("views", _("Views")),
        Column("visitors", _("New visitors")),
        Column("reads", _("Reads")),
        Column("before", _("Views, the period before")),
        Column("notes", _("Notes"), "text"),
    ]
    until = found.known_until
    earlier = [point.views for point in found.before] + [None] * len(found.points)
    rows = [
        Row((start.isoformat(), *(point if start <= until else (None, None, None)), before, note))
        for start, point, before, note in zip(found.starts, found.points, earlier, found.notes, strict=False)
    ]
    return Table("over-time", _("Views over time"), "", columns, rows, shown=len(rows))


def most_viewed(found: Numbers) -> Table:
    """Returns the objects with the most views in the period; of a chosen value of a dimension, those of all time."""
    if found.scope.values:
        return _with_values(found)
    columns = [
        Column("title", _("Title"), "text"),
        Column("views", _("Views")),
        *_columns_before(is_compared=found.is_compared),
        Column("visitors", _("New visitors")),
        Column("reads", _("Reads")),
        Column("trend", _("Trend"), "trend"),
    ]
    viewed = (one for one in found.entries if one.now.views)
    rows = [
        _row(found, one, (one.now.views, *_views_before(found, one), *one.now[1:], found.trend(one)))
        for one in islice(viewed, found.shown)
    ]
    return Table("most-viewed", _("Most viewed"), _among(found), columns, rows, _("No views in this period."))


def grew_most(found: Numbers) -> Table:
    """Returns the objects with the most views more than in the period before."""
    columns = [
        Column("title", _("Title"), "text"),
        Column("growth", _("More views")),
        Column("views", _("Views")),
        *_columns_before(is_compared=found.is_compared),
        Column("trend", _("Trend"), "trend"),
    ]
    grown = (one for one in found.entries if one.growth > 0)
    rows = [
        _row(found, one, (one.growth, one.now.views, *_views_before(found, one), found.trend(one)))
        for one in islice(grown, found.shown)
    ]
    caption = _among(found)
    # The list of all time has no first day, and where it is not cut it has all objects.
    if not caption and not found.asked.is_listed and found.objects.days != popular.EVER:
        since = date_format(timezone.localtime(buckets.now() - found.objects.days * buckets.DAY), "DATE_FORMAT")
        caption = _("Among the %(count)s objects with the most views since %(since)s.") % {
            "count": exact(MOST),
            "since": since,
        }
    empty = _("Nothing was viewed more often than in the period before.")
    return Table("grew-most", _("Grew most"), caption, columns, rows, empty)


def _with_values(found: Numbers) -> Table:
    values = found.scope.values
    columns = [Column("title", _("Title"), "text"), *(Column(name, value) for name, value in values.items())]
    rows = []
    for one in found.entries:
        counts = [found.hashes.get((f"views:{name}", one.subject), Counter())[value] for name, value in values.items()]
        rows += [_row(found, one, counts)] if all(counts) else []
    rows.sort(key=lambda row: row.values[1], reverse=True)
    caption = _(
        "Views of all time with each value, of the objects that were viewed most in the period: with the values of an "
        "object no day is stored."
    )
    return Table("most-viewed", _("Most viewed"), caption, columns, rows, _("No views with these values."))


def by_dimension(name: str) -> Callable[[Numbers], Table]:
    """Returns the table of a dimension: the views by its values."""

    def table(found: Numbers) -> Table:
        counts, *earlier = found.summed(f"views:{name}")
        total = counts.total()
        columns = [
            Column(name, heading(name), "text"),
            Column("views", _("Views")),
            *_columns_before(is_compared=bool(earlier)),
            Column("share", _("Share"), "share"),
        ]
        rows = []
        for value, count in counts.most_common():
            before = earlier[0][value] if earlier else None
            rows.append(Row((value, count, *_compared(count, before), _percent(count, total)), {name: value}))
        title = _titled(str(DIMENSIONS[name][0]) if name in DIMENSIONS else name, found)
        return Table(f"by-{name}", title, _of_objects(found), columns, rows, _nothing(found))

    return table


def _among(found: Numbers) -> str:
    """Returns which objects were looked at, where that may leave some out."""
    return _("Among the objects with the most views of all time.") if found.objects.is_cut else ""


def _nothing(found: Numbers) -> str:
    return _("No views in this period.") if found.has_gains else _("Nothing yet.")


def _titled(title: str, found: Numbers) -> str:
    return title if found.has_gains else f"{title} ({_('All time')})"


def _of_objects(found: Numbers) -> str:
    """Returns what the counts of breakdowns and funnels are about."""
    if found.has_gains:
        return _("Of all objects in the period; the last minutes may be missing.")
    if "object" in found.asked.chosen:
        return _("Views of all time.")
    return ngettext(
        "Views of all time of the most viewed object of the period.",
        "Views of all time of the %(count)s most viewed objects of the period together.",
        len(found.objects.first),
    ) % {"count": exact(len(found.objects.first))}


def really_read(found: Numbers) -> Table:
    """Returns the objects with the most reads in the period."""
    columns = [
        Column("title", _("Title"), "text"),
        Column("reads", _("Reads")),
        *_columns_before(is_compared=found.is_compared),
        Column("views", _("Views")),
        Column("ratio", _("Read to the end"), "share"),
        Column("median", _("Median time"), "seconds"),
    ]
    rows = []
    for one in sorted(found.entries, key=lambda one: one.now.reads, reverse=True):
        counts = found.hashes.get(("reading", one.subject), Counter())
        if one.now.reads or counts[ENGAGED]:
            views, reads = one.now.views, one.now.reads
            before = _compared(reads, one.before.reads if found.is_compared else None)
            seconds = median(counts) if counts[ENGAGED] else None
            rows.append(_row(found, one, (reads, *before, views, _percent(min(reads, views), views), seconds)))
    caption = " ".join(filter(None, (_("In the period; the median time is that of all time."), _among(found))))
    return Table("really-read", _("Really read"), caption, columns, rows, _("No text was read in this period."))


def funnel(found: Numbers) -> Table:
    """Returns the stages of the funnels of all objects together. A stage counts once in a visitor's pass."""
    some, *before = found.funnel
    columns = [
        Column("stage", _("Stage"), "text"),
        Column("count", _("Passes")),
        *_columns_before(is_compared=bool(before)),
        Column("rate", _("Of the first stage"), "share"),
        Column("step_rate", _("Of the stage before"), "share"),
    ]
    earlier = {one.name: one.count for stages in before for one in stages}
    rows = [
        Row((one.name, one.count, *_compared(one.count, earlier.get(one.name)), 100 * one.rate, 100 * one.step_rate))
        for one in some
        if some[0].count
    ]
    title = _titled(_("Funnel"), found)
    caption = f"{_of_objects(found)} {_('A visitor who comes again after an hour makes another pass.')}"
    return Table("funnel", title, caption, columns, rows, _nothing(found), shown=len(rows))


def sections(found: Numbers) -> Table:
    """Returns the categories with their readers, and the number of accounts that they are unread for."""
    columns = [
        Column("section", _("Category"), "text"),
        Column("readers", _("Readers")),
        Column("unread", _("Unread for")),
        Column("share", _("Share"), "share"),
    ]
    rows, accounts, models = [], 0, read_state_models()
    if "model" in found.asked.chosen:
        linked = {owner(link.related_model) for model in found.asked.models for link in news_links(model)}
        models = [model for model in models if model in linked]
    categories = [row for model in models for row in model._default_manager.order_by("pk")[:MOST]]
    if categories:
        by_subject = {subject_of(row): row for row in categories}
        # With "sequence" it waits long, for a server that does not answer, too.
        readers = fail_open(read_state.count_readers, {}, [*by_subject]) if found.is_whole else {}
        if not readers:
            names = {subject: subject_column(subject) for subject in by_subject}
            stored = history.newest_readers([*names.values()])
            readers = {subject: stored.get(name, 0) for subject, name in names.items()}
        accounts = _accounts()
        for subject, row in by_subject.items():
            count = readers.get(subject, 0)
            # Readers may be visitors, or accounts that are inactive by now.
            unread = None if conf.ANONYMOUS_READERS or count > accounts else accounts - count
            values = (row, count, unread, None if unread is None else _percent(unread, accounts))
            rows.append(Row(values, {"category": subject}))
        rows.sort(key=lambda row: row.values[1])
    caption = _("Readers since the last publication; it is unread for the other active accounts.")
    empty = _("No model is a category.")
    return Table("sections", _("Categories"), caption, columns, rows, empty, shown=50, is_of_period=False)


def _accounts() -> int:
    """Returns the number of active accounts; of many, whose count takes long, as of the last minutes."""
    tenant = keys.prefix()
    count, until = _accounts_known.get(tenant, (0, 0.0))
    if until < monotonic():
        count = get_user_model()._default_manager.filter(is_active=True).count()
        if count >= MANY:
            _accounts_known[tenant] = count, monotonic() + REMEMBERED
    return count


_accounts_known: dict[str, tuple[int, float]] = {}  # by tenant: the number, and until when it holds


def trending(found: Numbers) -> Table:
    """Returns the objects with the most views in the last hour."""
    columns = [Column("title", _("Title"), "text"), Column("views", _("Views"))]
    rows = [Row((row, views), {"object": subject}) for row, subject, views in found.trending]
    return Table(
        "trending",
        _("Trending now"),
        _("Views of the last hour, up to 10 minutes old."),
        columns,
        rows,
        _("No views in the last hour.") if found.is_whole else _("Not known at the moment."),
    )


def now(found: Numbers) -> Table:
    """Returns the number of people of the last minutes; of objects that filters name, the views. It is shown alone."""
    title, caption = _("People now"), _("visitors in the last five minutes")
    if found.asked.is_listed:
        title, caption = _("Now"), _("views in the last five minutes")
    return Table("now", title, caption, [Column("now", title)], [Row((found.recent,))])


def not_counted(found: Numbers) -> Table:
    """Returns the hits of the period that did not count, by reason; of the hours that Redis keeps."""
    caption = _("Of the whole site, whatever the filters. They are kept for 48 hours.")
    empty = _("No refused hit is known of this period. They are kept for 48 hours.")
    first = Column("reason", _("Reason"), "text")
    table = Table("not-counted", _("Not counted"), caption, [first], [], empty, shown=len(REASONS))
    return _refused(found, table, lambda name: REASONS.get(name))


def robots(found: Numbers) -> Table:
    """Returns the hits of robots in the period, by the names in their user agents; of the hours that Redis keeps."""
    others = {OTHER: _("other robots"), f"{NAMED}none": _("without a name")}
    caption = _("By the names that they give themselves: some 50 an hour. Of the whole site, whatever the filters.")
    empty = _("No refused robot is known of this period. They are kept for 48 hours.")
    table = Table("robots", _("Robots"), caption, [Column("robot", _("Robot"), "text")], [], empty, shown=2 * SHOWN)
    return _refused(found, table, lambda name: name.startswith(NAMED) and others.get(name, name.removeprefix(NAMED)))


def _refused(found: Numbers, table: Table, label: Callable[[Any], Any]) -> Table:
    """Returns the table with the skips that have a label: their hits, share, hits of yesterday and hours."""
    now = buckets.hour_index(buckets.now())
    span, yesterday = (
        found.asked.span.hours if found.asked.before else range(now + 1),
        Scope.parse(YESTERDAY).span.hours,
    )
    hours = [skips for back, skips in enumerate(found.skips) if now - back in span][::-1]
    sums = sum(hours, Counter())
    of_yesterday = sum((skips for back, skips in enumerate(found.skips) if now - back in yesterday), Counter[Any]())
    some = {name: words for name in sums if (words := label(name))}
    total = sum(sums[name] for name in some)
    rows = []
    for name in sorted(some, key=lambda name: (-sums[name], str(some[name]))):
        trend = [one[name] for one in hours]
        rows.append(Row((str(some[name]), sums[name], _percent(sums[name], total), of_yesterday[name], trend)))
    columns = [*table.columns, Column("hits", _("Hits")), Column("share", _("Share"), "share")]
    columns += [Column("yesterday", _("Yesterday")), Column("trend", _("By the hour"), "trend")]
    empty = table.empty if found.skips else _("Not known at the moment.")
    return replace(table, columns=columns, rows=rows, empty=empty)


def address_of(obj: Any) -> str:
    """Returns the address of the object's page on the site; "" for one without, or if the site's method fails."""
    try:
        return str(obj.get_absolute_url() or "") if hasattr(obj, "get_absolute_url") else ""
    except Exception as error:  # such as NoReverseMatch for one row
        log_failure(f"{obj.__class__.__name__}.get_absolute_url", "the dashboard has no link to it", type(error))
        return ""


def title_of(obj: Any) -> str:
    """Returns the object as text; its model and key if the site's method fails."""
    try:
        return str(obj)
    except Exception as error:
        log_failure(f"{obj.__class__.__name__}.__str__", "the dashboard shows its key", type(error))
        return Model.__str__(obj)


def name_of(user: Any) -> str:
    """Returns the user's full name; the user as text where there is none."""
    return (user.get_full_name() if hasattr(user, "get_full_name") else "") or title_of(user)


def _views_before(found: Numbers, entry: Entry) -> tuple[int | None, ...]:
    return _compared(entry.now.views, entry.before.views if found.is_compared else None)


def _row(found: Numbers, entry: Entry, values: Sequence[Any]) -> Row:
    return Row((found.objects[entry.subject], *values), {"object": entry.subject})


DIMENSIONS = {
    "referrer": (gettext_lazy("Sources"), gettext_lazy("Source")),
    "country": (gettext_lazy("Countries"), gettext_lazy("Country")),
    "device": (gettext_lazy("Devices"), gettext_lazy("Device")),
    "browser": (gettext_lazy("Browsers"), gettext_lazy("Browser")),
    "os": (gettext_lazy("Systems"), gettext_lazy("System")),
}

TABLES: Mapping[str, Callable[[Numbers], Table]] = {
    "over-time": over_time,
    "most-viewed": most_viewed,
    "grew-most": grew_most,
    "trending": trending,
    "now": now,
    "really-read": really_read,
    "funnel": funnel,
    "sections": sections,
    "not-counted": not_counted,
    "robots": robots,
}


def table_named(name: str) -> Callable[[Numbers], Table]:
    """Returns the function that makes a table: one of TABLES, or `by-` and the name of a dimension."""
    return TABLES[name] if name in TABLES else by_dimension(name.removeprefix("by-"))


def heading(name: str) -> str:
    """Returns the name of a dimension for people."""
    return str(DIMENSIONS[name][1]) if name in DIMENSIONS else name
