"""The list of top stories: sorted by any heading, searched by title, and as long as one wants."""

from collections.abc import Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from readtrack.dashboard.navigation import Choice
from readtrack.dashboard.overview import COLUMNS_OF_STORIES, file_of, pick
from readtrack.dashboard.panels import File, PageRow, row_of, shown_columns
from readtrack.numbers import tables
from readtrack.numbers.counted import counts_days
from readtrack.numbers.data import ScopeData
from readtrack.numbers.objects import MOST
from readtrack.numbers.people import days_of
from readtrack.numbers.reports.people import visitors_in
from readtrack.numbers.scope import Scope
from readtrack.numerals import exact
from readtrack.subjects import label_in
from readtrack.texts import title_of

ROWS = 50  # of a page; each click on "show more" adds as many
LONGEST_SEARCH = 200  # characters
NOT_SORTED = {"trend"}
COMPARED_BY_VISITORS = 200  # stories with the most views, among which those with most visitors are


class Asked(NamedTuple):
    """How the address wants the list."""

    search: str
    group: str  # of the panel of categories or authors, on the overview
    order: str  # the name of a column
    is_rising: bool  # the lowest number first
    rows: int

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> "Asked":
        """Returns what an address asks for; what is not valid is as if it were not there."""
        order = str(given.get("order", ""))
        rows = str(given.get("rows", ""))
        count = int(rows) if rows.isascii() and rows.isdigit() and len(rows) < 5 else ROWS
        return cls(
            search=str(given.get("q", ""))[:LONGEST_SEARCH].replace("\0", "").strip(),
            group=str(given.get("group", "")),
            order=order if order in COLUMNS_OF_STORIES and order not in NOT_SORTED else "views",
            is_rising=given.get("dir") == "up",
            rows=max(ROWS, min(MOST, count)),
        )

    def parameters(self, **changes: Any) -> dict[str, str]:
        """Returns the parameters of the address of such a list, with changes."""
        asked = self._replace(**changes)
        return {
            "tab": "stories",
            "q": asked.search,
            "order": "" if asked.order == "views" else asked.order,
            "dir": "up" if asked.is_rising else "",
            "rows": "" if asked.rows == ROWS else str(asked.rows),
        }


class Heading(NamedTuple):
    """A heading of the list: its column, and the address that sorts by it."""

    column: tables.Column
    address: str  # "" for a column that nothing is sorted by
    sort: str  # ascending, descending or ""


class Stories(NamedTuple):
    """The list for the template."""

    headings: Sequence[Heading]
    rows: Sequence[PageRow]
    caption: str
    empty: str
    more: Choice | None
    search: str
    kept: Sequence[tuple[str, str]]  # parameters of the address, for the form of the search
    file: File | None


def stories_of(data: ScopeData, asked: Asked, *, site: str | None) -> Stories:
    """Returns the list as the address asks for it. `data` has up to MOST objects."""
    scope = data.asked
    full = tables.table_named("most-viewed", data)
    table = pick(full, COLUMNS_OF_STORIES)
    if data.asked.is_joint:  # with a column for each value
        table = full
    found = _found(table.rows, asked.search)
    if asked.order == "visitors":
        found = _with_visitors(table, found[:COMPARED_BY_VISITORS], data)
    names = [column.name for column in table.columns]
    if asked.order in names:
        found = _sorted(found, names, asked)
    shown = found[: asked.rows]
    if asked.order != "visitors":
        shown = _with_visitors(table, shown, data)
    empty = table.empty
    if asked.search:
        empty = _("No story of the period has these words in its title.")
    return Stories(
        headings=[_heading(column, scope, asked) for column in shown_columns(table)],
        rows=[row_of(table, row, scope, site=site) for row in shown],
        caption=_caption(full, found, asked),
        empty=empty,
        more=_more(scope, asked, left=len(found) - len(shown)),
        search=asked.search,
        kept=_kept(scope, asked),
        file=file_of(full, scope),
    )


def _more(scope: Scope, asked: Asked, *, left: int) -> Choice | None:
    """Returns the link that shows more of the `left` rows; None without such rows."""
    if left <= 0:
        return None
    count = min(ROWS, left)
    label = ngettext("Show %(count)s more", "Show %(count)s more", count)
    address = scope.address(**asked.parameters(rows=asked.rows + ROWS))
    return Choice(label % {"count": exact(count)}, address, is_chosen=False)


def first_stories(table: tables.Table, data: ScopeData, *, site: str | None) -> Stories:
    """Returns the first rows of the list, for the overview. Its headings lead to the whole list."""
    scope = data.asked
    asked = Asked.parse({})
    picked = table if scope.is_joint else pick(table, COLUMNS_OF_STORIES)
    more = None
    viewed = [entry for entry in data.entries if entry.now.views]
    if len(viewed) > tables.ROWS_ON_PAGE:
        address = scope.address(**asked.parameters())
        more = Choice(_("More stories"), address, is_chosen=False)
    rows = picked.rows[: tables.ROWS_ON_PAGE]
    return Stories(
        headings=[_heading(column, scope, asked) for column in shown_columns(picked)],
        rows=[row_of(picked, row, scope, site=site) for row in rows],
        caption=table.caption,
        empty=table.empty,
        more=more,
        search="",
        kept=_kept(scope, asked),
        file=file_of(table, scope),
    )


def _kept(scope: Scope, asked: Asked) -> list[tuple[str, str]]:
    """Returns the parameters of the address that a search keeps."""
    address = scope.address(**asked.parameters(search="", rows=ROWS))
    return parse_qsl(address.removeprefix("?"))


def _found(rows: Sequence[tables.Row], search: str) -> list[tables.Row]:
    """Returns the rows whose titles have all words of the search."""
    words = search.casefold().split()
    if not words:
        return [*rows]
    found = []
    for row in rows:
        title = title_of(row.values[0]).casefold()
        if all(word in title for word in words):
            found.append(row)
    return found


def _sorted(rows: Sequence[tables.Row], names: Sequence[str], asked: Asked) -> list[tables.Row]:
    """Returns the rows by the value of the column that is asked for; those without a number, which
    have a dash, come last.
    """
    if asked.order == "title":
        by_title = sorted(rows, key=lambda row: title_of(row.values[0]).casefold())
        return by_title if not asked.is_rising else by_title[::-1]
    numbers = [_number_of(row, names, asked.order) for row in rows]
    known = [(number, row) for number, row in zip(numbers, rows, strict=True) if number is not None]
    unknown = [row for number, row in zip(numbers, rows, strict=True) if number is None]
    known.sort(key=itemgetter(0), reverse=not asked.is_rising)
    return [*(row for _number, row in known), *unknown]


def _number_of(row: tables.Row, names: Sequence[str], name: str) -> float | None:
    """Returns the number by which a row is sorted; None for a dash.

    Where nothing was before, what the page calls "new" is the highest change.
    """
    values = dict(zip(names, row.values, strict=True))
    number: float | None = values[name]
    if name == "change" and values.get("before") == 0:
        return inf
    return number


def _with_visitors(
    table: tables.Table, rows: Sequence[tables.Row], data: ScopeData
) -> list[tables.Row]:
    """Returns the rows with their visitors, which cost too much to be known of all. Without Redis,
    which unites the days, they are as the table has them: not known.
    """
    names = [column.name for column in table.columns]
    if "visitors" not in names or data.by_value or not data.is_whole:
        return [*rows]
    place = names.index("visitors")
    subjects = [row.filters["object"] for row in rows]
    counted = [subject for subject in subjects if counts_days(label_in(subject))]
    visitors = visitors_in(counted, days_of(data.scope.span))
    return [
        row._replace(
            values=[
                *row.values[:place],
                visitors.get(subject),
                *row.values[place + 1 :],
            ]
        )
        for row, subject in zip(rows, subjects, strict=True)
    ]


def _heading(column: tables.Column, scope: Scope, asked: Asked) -> Heading:
    """Returns the heading of a column. A click on that of the present order turns it round."""
    if column.name not in COLUMNS_OF_STORIES or column.name in NOT_SORTED:
        return Heading(column, "", "")
    is_chosen = column.name == asked.order
    is_rising = is_chosen and not asked.is_rising
    address = scope.address(**asked.parameters(order=column.name, is_rising=is_rising, rows=ROWS))
    sort = ""
    if is_chosen:
        is_ascending = asked.is_rising != (column.name == "title")
        sort = "ascending" if is_ascending else "descending"
    return Heading(column, address, sort)


def _caption(table: tables.Table, found: Sequence[tables.Row], asked: Asked) -> str:
    """Returns how many stories there are, and among which they were looked for."""
    count = len(found)
    text = ngettext("%(count)s story.", "%(count)s stories.", count) % {"count": exact(count)}
    if asked.search:
        listed = len(table.rows)
        among = ngettext(
            "Found among the %(count)s story of the list.",
            "Found among the %(count)s stories of the list.",
            listed,
        )
        text = f"{text} {among % {'count': exact(listed)}}"
    if len(table.rows) >= MOST:
        limit = _("The list has the stories with the most views of the period.")
        text = f"{text} {limit}"
    return " ".join(filter(None, [text, str(table.caption)]))
