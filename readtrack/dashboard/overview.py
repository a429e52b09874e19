"""The panels of the overview: what the dashboard shows below the chart, in the order of a
morning.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from readtrack import buckets
from readtrack.dashboard.navigation import Choice, begins_before_skips
from readtrack.dashboard.panels import (
    HIDDEN,
    File,
    PageRow,
    details_texts,
    link_of,
    row_of,
    shown_columns,
)
from readtrack.numbers import tables
from readtrack.numbers.causes import causes_of
from readtrack.numbers.changes import multiple, signed
from readtrack.numbers.comparison import part_compared
from readtrack.numbers.data import ScopeData
from readtrack.numbers.objects import LEAST_OPENED, STILL_READ_DAYS
from readtrack.numbers.offered import tables_by_tab
from readtrack.numbers.scope import Scope
from readtrack.numbers.sql import thinning
from readtrack.numbers.words_of_causes import phrase_of_cause
from readtrack.numerals import exact
from readtrack.subjects import subject_of
from readtrack.texts import title_of

FEW = 3  # rows of a short list
SOME = 7  # rows of a list beside another panel
ROWS_OF_REFUSED = 5
MOST_PARTS = 4  # of a strip; the others are together


class Item(NamedTuple):
    """An object of a short list, with what there is to say of it."""

    title: str
    link: str
    number: str
    remark: str


class ShortList(NamedTuple):
    """A short list of objects, and the link to all of them."""

    title: str
    remark: str
    items: Sequence[Item]
    more: str  # "" if this is all
    empty: str
    file: File | None


class Part(NamedTuple):
    """A part of a strip: a value of a dimension."""

    label: str
    share: str
    link: str
    start: float  # in per cent of the strip
    length: float


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of rows."""

    name: str
    title: Any
    columns: Sequence[tables.Column] = ()
    rows: Sequence[PageRow] = ()
    caption: str = ""
    strip: Sequence[Part] = ()
    empty: str = ""
    more: Choice | None = None
    file: File | None = None
    switch: Sequence[Choice] = ()
    is_known: bool = True  # False if its numbers are not stored by the values of the filters


def panel_of(
    table: tables.Table,
    scope: Scope,
    *,
    columns: Sequence[str],
    limit: int,
    site: str | None,
    tab: str = "",
    **changes: Any,
) -> Panel:
    """Returns a panel with these columns of the first rows of a table.

    `tab` is the page with all rows. `changes` are other fields of the panel.
    """
    picked = pick(table, columns)
    shown = picked.rows[:limit]
    rows = [row_of(picked, row, scope, site=site) for row in shown]
    _set_bars(picked, rows)
    more = None
    if tab and len(table.rows) > limit:
        count = len(table.rows)
        label = ngettext("All %(count)s", "All %(count)s", count) % {"count": exact(count)}
        more = Choice(label, scope.address(tab=tab), is_chosen=False)
    fields: dict[str, Any] = {
        "name": table.name,
        "title": table.title,
        "columns": shown_columns(picked),
        "rows": rows,
        "empty": table.empty,
        "more": more,
        "file": file_of(table, scope),
        **changes,
    }
    return Panel(**fields)


def file_of(table: tables.Table, scope: Scope) -> File | None:
    """Returns the files of a table; None for one without rows."""
    if not table.rows:
        return None
    addresses = {kind: scope.address(table=table.name, format=kind) for kind in ("csv", "json")}
    return File(str(table.title), addresses)


def pick(table: tables.Table, names: Sequence[str]) -> tables.Table:
    """Returns the table with these of its columns, and the HIDDEN ones.

    "ratio" may be made of its views and reads.
    """
    table = _with_ratio(table)
    places = {column.name: place for place, column in enumerate(table.columns)}
    chosen = [name for name in dict.fromkeys([*names, *HIDDEN]) if name in places]
    rows = []
    for row in table.rows:
        values = [row.values[places[name]] for name in chosen]
        rows.append(row._replace(values=values))
    columns = [table.columns[places[name]] for name in chosen]
    return table._replace(columns=columns, rows=rows)


def _with_ratio(table: tables.Table) -> tables.Table:
    """Returns the table with the share of the views that were read, if it has both numbers."""
    names = [column.name for column in table.columns]
    if "ratio" in names or not {"views", "reads"} <= {*names}:
        return table
    views = table.values("views")
    reads = table.values("reads")
    rows = []
    for row, views_of_row, reads_of_row in zip(table.rows, views, reads, strict=True):
        ratio = _ratio(reads_of_row, views_of_row)
        rows.append(row._replace(values=[*row.values, ratio]))
    return table._replace(columns=[*table.columns, tables.COLUMNS["ratio"]], rows=rows)


def _ratio(reads: int | None, views: int | None) -> float | None:
    """Returns the share of the views that were read in per cent; None if that is not known."""
    if reads is None or not views:
        return None
    return min(100.0, 100 * reads / views)


def _set_bars(table: tables.Table, rows: Sequence[PageRow]) -> None:
    """Gives each row the length of its bar in per cent of the longest: that of its first number."""
    kinds = [column.value_kind for column in table.columns]
    if "number" not in kinds:
        return
    index = kinds.index("number")
    numbers = [row.values[index] or 0 for row in table.rows[: len(rows)]]
    longest = max([1, *numbers])
    for row, number in zip(rows, numbers, strict=True):
        row.head["bar"] = round(100 * number / longest)


def strip_of(table: tables.Table, dimension: str, scope: Scope) -> list[Part]:
    """Returns the strip of a dimension: its largest values, and all others together."""
    counts = table.values("views") if table.rows else []
    total = sum(counts)
    parts = []
    start = 0.0
    for row, count in [*zip(table.rows, counts, strict=True)][:MOST_PARTS]:
        share = 100 * count / total
        label = tables.name_of_value(dimension, row.values[0])
        link = "" if row.filters.items() <= scope.chosen.items() else scope.address(**row.filters)
        parts.append(
            Part(label, tables.text(share, "share"), link, round(start, 2), round(share, 2))
        )
        start += share
    rest = sum(counts[MOST_PARTS:])
    if rest:
        share = 100 * rest / total
        label = pgettext("values of a dimension", "Other")
        parts.append(Part(label, tables.text(share, "share"), "", round(start, 2), round(share, 2)))
    return parts


def grown(table: tables.Table, data: ScopeData, *, site: str | None) -> ShortList:
    """Returns the objects that grew most, and in short why. Makes one query."""
    scope = data.asked
    causes = causes_of(data, [subject_of(row.values[0]) for row in table.rows[:FEW]])
    names = [column.name for column in table.columns]
    items = []
    for row in table.rows[:FEW]:
        texts = tables.texts_of_row(row, table.columns)
        remark = dict(zip(names, texts, strict=True)).get("change", "")
        why = phrase_of_cause(causes.get(subject_of(row.values[0])))
        if why:
            remark = _("%(change)s: %(why)s") % {"change": remark, "why": why}
        number = signed(row.values[names.index("growth")])
        items.append(Item(title_of(row.values[0]), link_of(row, scope, site=site), number, remark))
    return _short_list(table, scope, part_compared(data), items=items, tab="growth")


def still_read(table: tables.Table, data: ScopeData, *, site: str | None) -> ShortList:
    """Returns the old objects with the most views."""
    items = []
    for row in table.rows[:FEW]:
        texts = details_texts(row.values[0])
        number = _views(row.values[1])
        link = link_of(row, data.asked, site=site)
        items.append(Item(title_of(row.values[0]), link, number, texts[0] if texts else ""))
    remark = ngettext(
        "more than %(count)s day old when the period began",
        "more than %(count)s days old when the period began",
        STILL_READ_DAYS,
    ) % {"count": exact(STILL_READ_DAYS)}
    return _short_list(table, data.asked, remark, items=items, tab="age")


def below_usual(table: tables.Table, data: ScopeData, *, site: str | None) -> ShortList:
    """Returns the objects that are furthest below what is usual at their age."""
    names = [column.name for column in table.columns]
    items = []
    for row in table.rows[:FEW]:
        values = dict(zip(names, row.values, strict=True))
        remark = _views(values["views"])
        number = _("%(number)s ×") % {"number": multiple(values["usual"])}
        link = link_of(row, data.asked, site=site)
        items.append(Item(title_of(row.values[0]), link, number, remark))
    return _short_list(table, data.asked, _("published in the period"), items=items, tab="below")


def hardly_read(table: tables.Table, data: ScopeData, *, site: str | None) -> ShortList:
    """Returns the objects that were opened often, and of which the smallest share was read."""
    names = [column.name for column in table.columns]
    items = []
    for row in table.rows[:FEW]:
        values = dict(zip(names, row.values, strict=True))
        views = ngettext("of %(count)s view", "of %(count)s views", values["views"])
        number = _("%(share)s read") % {"share": tables.text(values["ratio"], "share")}
        remark = views % {"count": exact(values["views"])}
        link = link_of(row, data.asked, site=site)
        items.append(Item(title_of(row.values[0]), link, number, remark))
    at_least = ngettext("%(count)s view or more", "%(count)s views or more", LEAST_OPENED)
    remark = at_least % {"count": exact(LEAST_OPENED)}
    return _short_list(table, data.asked, remark, items=items, tab="hardly")


def _short_list(
    table: tables.Table, scope: Scope, remark: str, *, items: Sequence[Item], tab: str
) -> ShortList:
    """Returns the short list of a table. `tab` is the page with all of its rows."""
    return ShortList(
        title=str(table.title),
        remark=remark,
        items=items,
        more=scope.address(tab=tab) if len(table.rows) > FEW else "",
        empty=table.empty,
        file=file_of(table, scope),
    )


def _views(count: int) -> str:
    return ngettext("%(count)s view", "%(count)s views", count) % {"count": exact(count)}


#: The short lists of what is worth a look, by the names of tables.
SHORT_LISTS: Mapping[str, Callable[..., ShortList]] = {
    "grew-most": grown,
    "below-usual": below_usual,
    "still-read": still_read,
    "hardly-read": hardly_read,
}
#: Their titles where their tables are not known.
TITLES: Mapping[str, Any] = {
    "below-usual": gettext_lazy("Below usual"),
    "still-read": gettext_lazy("Still read"),
    "hardly-read": gettext_lazy("Opened, hardly read"),
    "grew-most": gettext_lazy("Grew most"),
}
#: The columns of each panel, by the names of tables.
COLUMNS_OF_VALUES = ("views", "change", "share")
COLUMNS_OF_GROUPS = ("views", "change", "visitors", "ratio")
COLUMNS_OF_STORIES = ("title", "usual", "views", "change", "ratio", "visitors", "trend")
NO_CAMPAIGNS = gettext_lazy(
    "No campaigns yet. Add ?utm_campaign=spring to a link that you share, and its views appear here."
)


#: Tables of which nothing is said with a filter: many sites do not use a funnel.
NEVER_SAID = {"funnel"}


class Tables(NamedTuple):
    """The tables of the overview by name, with what links of their rows need."""

    by_name: Mapping[str, tables.Table]
    data: ScopeData
    scope: Scope
    site: str | None

    def panel(
        self, name: str, columns: Sequence[str], *, limit: int, tab: str = "", **changes: Any
    ) -> Panel | None:
        """Returns the panel of the table called `name`; None if the page has no such table.

        Of the dimension of a filter there is none either: its only row is the value itself.
        """
        table = self.by_name.get(name)
        if name in self.unknown:
            return self._unknown(name, str(changes.get("title", "")))
        if table is None or name.removeprefix("by-") in self.scope.values:
            return None
        first = table.columns[0].name
        return panel_of(
            table,
            self.scope,
            columns=[first, *columns],
            limit=limit,
            site=self.site,
            tab=tab,
            **changes,
        )

    def _unknown(self, name: str, title: str) -> Panel:
        """Returns the panel of a table that is not known with the filters."""
        title = title or str(tables.labels_of(name.removeprefix("by-")).title)
        return Panel(name, title, is_known=False)

    @property
    def unknown(self) -> set[str]:
        """The names of the tables that the scope has, and that are not known with its values."""
        if not self.scope.values:
            return set()
        offered = {name for names in tables_by_tab(self.scope).values() for name in names}
        return {name for name in offered - NEVER_SAID if not tables.is_known(name, self.scope)}

    def strip_by(self, dimension: str) -> list[Part]:
        """Returns the strip of a dimension; empty if the page has none."""
        table = self.by_name.get(f"by-{dimension}")
        return [] if table is None else strip_of(table, dimension, self.scope)


def overview(
    by_name: Mapping[str, tables.Table],
    data: ScopeData,
    *,
    group: str,
    site: str | None,
) -> dict[str, Any]:
    """Returns the template's context for the panels of the overview.

    `by_name` are its tables, `group` is the kind of groups that the address asks for.
    """
    scope = data.asked
    given = Tables(by_name, data, scope, site)
    fields = fields_of(given)
    without_filters = scope.address(**{field.name: "" for field in fields})
    panels = {
        "trending": given.panel("trending", ["views"], limit=SOME, title=_("Now")),
        "sources": given.panel(
            "by-referrer",
            COLUMNS_OF_VALUES,
            limit=5,
            tab="sources",
            title=_("Where readers come from"),
            caption=_caption_of(given, "referrer"),
            strip=given.strip_by("channel"),
        ),
        "campaigns": _campaigns(given),
        "countries": _countries(given),
        "groups": _groups(given, group),
        "ages": given.panel(
            "views-by-age",
            ("views", "share"),
            limit=SOME,
            title=_("Age of what was read"),
            caption=_caption_of_groups(given),
        ),
        "funnel": given.panel("funnel", ("count", "rate"), limit=SOME),
        "unread": given.panel(
            "sections",
            ("unread", "readers", "share"),
            limit=5,
            tab="sections",
            title=_("Unread by category"),
            caption=_caption_of_unread(data),
        ),
        "refused": _refused(given),
    }
    unknown = [panel for panel in panels.values() if panel is not None and not panel.is_known]
    return {
        **{name: None if panel in unknown else panel for name, panel in panels.items()},
        "looks": _looks(given),
        "unknown": _unknown_text(given, unknown),
        "fields": fields,
        "kept_by_filters": parse_qsl(without_filters.removeprefix("?")),
    }


def _unknown_text(given: Tables, unknown: Sequence[Panel]) -> str:
    """Returns a sentence on what is not known with the filters; "" if all is known."""
    titles = [str(TITLES[name]) for name in SHORT_LISTS if name in given.unknown]
    titles += [str(panel.title) for panel in unknown]
    if not titles:
        return ""
    text = _("Not known for this filter: %(titles)s.") % {"titles": " · ".join(titles)}
    if given.scope.is_joint:  # otherwise the list of stories says it
        text = f"{text} {tables.known_by_value(given.data)}"
    return text


def _refused(given: Tables) -> Panel | None:
    """Returns the panel of refused hits. Its link says so if there are more rows."""
    table = given.by_name.get("not-counted")
    titles = {}
    if begins_before_skips(given.scope):
        titles["title"] = _("Not counted in the last 48 hours")
    panel = given.panel(
        "not-counted",
        ("hits", "share", "yesterday"),
        limit=ROWS_OF_REFUSED,
        tab="refused",
        caption=table.caption if table else "",
        **titles,
    )
    if panel is None or panel.more is not None:
        return panel
    address = given.scope.address(tab="refused")
    more = Choice(_("Robots and assistants by name"), address, is_chosen=False)
    return replace(panel, more=more)


def _campaigns(given: Tables) -> Panel | None:
    """Returns the panel of campaigns. Without any, it says whether there were some earlier."""
    panel = given.panel(
        "by-campaign",
        COLUMNS_OF_VALUES,
        limit=FEW,
        tab="sources",
        caption=_caption_of(given, "campaign"),
        empty=str(NO_CAMPAIGNS),
    )
    first = given.data.first_gains.get("views:campaign")
    if panel is None or panel.rows or not panel.is_known or first is None:
        return panel
    empty = _("No views from campaigns in this period.")
    # With filters the first ones may be of other objects.
    if not given.scope.is_listed and not _may_follow_deleted(first):
        day = date_format(timezone.localtime(first), "DATE_FORMAT")
        text = _("No views from campaigns in this period. The first ones were on %(day)s.")
        empty = text % {"day": day}
    address = given.scope.address(period="all", tab="sources")
    return replace(panel, empty=empty, more=Choice(_("All time"), address, is_chosen=False))


def _may_follow_deleted(first: datetime) -> bool:
    """Returns True if that first time is so early that history before it may have been deleted."""
    oldest = thinning.oldest_kept(at=buckets.now())
    return oldest is not None and first < oldest + buckets.DAY


def _caption_of(given: Tables, dimension: str) -> str:
    """Returns what there is to say of a dimension, such as of how many views the source is not
    known; "" if there is nothing.
    """
    table = given.by_name.get(f"by-{dimension}")
    if table is None or not table.rows:
        return ""
    known = sum(table.values("views"))
    caption = tables.caption_of_dimension(given.data, dimension, known=known)
    if dimension not in tables.WITH_UNKNOWN or not given.scope.is_present:
        return caption
    if not tables.caption_of_unknown(given.data, known):
        return caption
    follow = _("Sources of the last minutes follow.")
    return f"{caption} {follow}"


def _caption_of_groups(given: Tables) -> str:
    """Returns what the panels of categories, authors and ages lack, which have no live views; "" for
    a period that is over, of which they have all views.
    """
    if not given.scope.is_present:
        return ""
    return _("Views of the last hour may be missing.")


def _caption_of_unread(data: ScopeData) -> str:
    """Returns of how many accounts the readers are, and since when they have read."""
    text = ngettext(
        "Of %(count)s active account, since the last publication.",
        "Of %(count)s active accounts, since the last publication.",
        data.accounts,
    )
    return text % {"count": exact(data.accounts)}


def _looks(given: Tables) -> list[ShortList]:
    """Returns the short lists of what is worth a look."""
    lists = []
    for name, short_list in SHORT_LISTS.items():
        table = given.by_name.get(name)
        if table is not None:
            lists.append(short_list(table, given.data, site=given.site))
    return lists


def _countries(given: Tables) -> Panel | None:
    """Returns the panel of devices and countries; of browsers where countries are not counted."""
    for dimension in ("country", "browser", "device"):
        panel = given.panel(
            f"by-{dimension}",
            COLUMNS_OF_VALUES,
            limit=SOME,
            tab="sources",
            caption=_caption_of(given, dimension),
            strip=given.strip_by("device"),
        )
        if panel is not None:
            title = _("Devices and countries") if dimension == "country" else panel.title
            return replace(panel, title=title)
    return None


def _groups(given: Tables, group: str) -> Panel | None:
    """Returns the panel of categories, or of authors, with a switch between both."""
    names = {"section": "views-by-section", "author": "views-by-author"}
    offered = [kind for kind in names if names[kind] in {*given.by_name, *given.unknown}]
    if not offered:
        return None
    chosen = group if group in offered else offered[0]
    labels = {"section": _("Categories"), "author": _("Authors")}
    switch = []
    for kind in offered:
        address = given.scope.address(group="" if kind == offered[0] else kind)
        switch.append(Choice(labels[kind], f"{address}#readtrack-groups", kind == chosen))
    return given.panel(
        names[chosen],
        COLUMNS_OF_GROUPS,
        limit=8,
        tab="groups",
        title=labels[chosen],
        caption=_caption_of_groups(given),
        switch=switch if len(switch) > 1 else (),
    )


class Field(NamedTuple):
    """A field of the form of filters: a filter, and the values that can be chosen."""

    name: str
    label: str
    options: Sequence[tuple[str, str, bool]]  # the value, its text, and whether it is chosen


#: The tables whose rows can be chosen, by the names of filters.
TABLES_OF_FILTERS = {"category": "views-by-section", "author": "views-by-author"}
MOST_OPTIONS = 50


def fields_of(given: Tables) -> list[Field]:
    """Returns the filters that the form offers: those whose values the page knows."""
    fields = []
    names = {**TABLES_OF_FILTERS}
    names.update((name.removeprefix("by-"), name) for name in given.by_name if "by-" in name[:3])
    for name, table_name in names.items():
        table = given.by_name.get(table_name)
        if table is None or not table.rows or not given.scope.takes(name):
            continue
        options = []
        for row in table.rows[:MOST_OPTIONS]:
            value = row.filters.get(name, "")
            if value:
                text = tables.text_of_cell(row.values[0], table.columns[0])
                options.append((value, text, given.scope.chosen.get(name) == value))
        fields.append(Field(name, str(table.columns[0].heading), options))
    return fields
