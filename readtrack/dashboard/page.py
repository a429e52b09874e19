"""The dashboard's page, and its tables as files: CSV for people and spreadsheets, JSON for
programs.
"""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.contrib.auth import get_user_model
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.http import Http404, StreamingHttpResponse
from django.utils import timezone
from django.utils.formats import date_format, get_format
from django.utils.functional import lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from readtrack import buckets
from readtrack.conf import conf
from readtrack.dashboard import charts, tables
from readtrack.dashboard.numbers import Numbers
from readtrack.dashboard.scope import MOMENT, PERIODS, Scope, dimension_names
from readtrack.hits.addresses import NOTICES
from readtrack.numerals import exact
from readtrack.reports.access import numbers_url
from readtrack.sql import runs
from readtrack.subjects import (
    counted_models,
    enters_funnel,
    label_of,
    parse_subject,
    read_state_models,
)
from readtrack.texts import address_of, name_of, title_of

FILES = ("csv", "json")
# A spreadsheet may take another separator than the file's, and then a cell begins after each `;`.
# The last four are full-width.
FORMULA = re.compile(r"""(^|;)([\s"]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def _day_format() -> str:
    """Returns the format of a day without its year. In some languages, as in American English, the
    month is first.
    """
    return (
        "N j"
        if get_format("MONTH_DAY_FORMAT").startswith("F")
        else pgettext("format of a day", "j N")
    )


# Of the chart's axis, in the letters of Django's template filter `date` or by the name of a
# setting.
_DAY, _MONTH = lazy(_day_format, str)(), pgettext_lazy("format of a month", "N Y")
FORMATS: Mapping[str, Any] = {"hour": "TIME_FORMAT", "day": _DAY, "week": _DAY, "month": _MONTH}
WITH_YEAR: Mapping[str, Any] = {
    **FORMATS,
    "day": "DATE_FORMAT",
    "week": "DATE_FORMAT",
}  # of its table

TABS: Mapping[str, Any] = {
    "numbers": gettext_lazy("Numbers"),
    "growth": gettext_lazy("Grew most"),
    "sources": gettext_lazy("Where from"),
    "reading": gettext_lazy("Reading"),
    "sections": gettext_lazy("Categories"),
    "refused": gettext_lazy("Not counted"),
}


def export(scope: Scope, name: str, kind: str, **options: Any) -> StreamingHttpResponse:
    """Returns a table of the page as CSV or JSON, in its units: shares and changes in per cent,
    times in seconds.

    Columns have the headings of the page, and in JSON also names that are the same in all
    languages. A text in CSV cannot be a formula. A file without what a silent Redis knows says so
    in its name, in a header, and in JSON. Rows are sent one by one. `options` are those of Numbers.
    Raises Http404 for a table that the page lacks.
    """
    if not any(name in names for names in _tabs(scope).values()):
        raise Http404
    found = Numbers(scope, [name], **options)
    table, is_complete = tables.table_named(name, found), found.is_whole
    file = f"{name}.{kind}" if is_complete else f"{name}-incomplete.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    if not is_complete:
        headers["X-Readtrack-Complete"] = "false"
    names = [one.name for one in table.columns]
    headings: list[Any] = [str(one.heading) for one in table.columns]
    rows = (
        [round(one, 2) if isinstance(one, float) else one for one in row.values]
        for row in table.rows
    )
    if kind == "json":
        content = {
            "table": name,
            "is_complete": is_complete,
            "columns": names,
            "headings": headings,
        }
        texts = (
            f"{', ' if number else ''}{json.dumps(row, default=title_of)}"
            for number, row in enumerate(rows)
        )
        lines: Iterable[str] = chain([json.dumps(content)[:-1] + ', "rows": ['], texts, ["]}"])
        return StreamingHttpResponse(lines, headers=headers, content_type="application/json")
    line: Any = SimpleNamespace(write=str)  # a file that gives back what is written into it
    # Numbers have no quotes, so that they stay numbers.
    writer = csv.writer(line, quoting=csv.QUOTE_NONNUMERIC)
    lines = (writer.writerow([*map(_cell, row)]) for row in chain([headings], rows))
    return StreamingHttpResponse(lines, headers=headers, content_type="text/csv; charset=utf-8")


def _cell(value: Any) -> str | int | float | None:
    """Returns a value as a cell of CSV: a number, or a text that no spreadsheet computes."""
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    # The apostrophe comes right before the character that would begin a formula.
    return FORMULA.sub(r"\1\2'", title_of(value))


def _tabs(scope: Scope) -> dict[str, Sequence[str]]:
    """Returns the tables of the tabs that the settings and the filters have something for; of one
    object all in one.
    """
    by = [f"by-{name}" for name in dimension_names()]
    reading = ["really-read", "funnel"] if conf.FUNNEL else ["really-read"]
    if "object" in scope.chosen:
        return {"numbers": ["over-time", *by, *reading, "now"]}
    if scope.values:  # which nothing else can be filtered by
        return {"numbers": ["most-viewed"]}
    found: dict[
        str, Sequence[str]
    ] = {  # with fixed filters none of the whole site, which the reader may not see
        "numbers": ["over-time", "most-viewed", "trending", "now"],
        "growth": ["grew-most"] if scope.before else [],
        "sources": by,
        "reading": reading,
        "sections": ["sections"] if read_state_models() and not scope.fixed else [],
        "refused": [] if scope.fixed else ["not-counted", "robots"],
    }
    return {tab: names for tab, names in found.items() if names}


def page_context(
    scope: Scope, tab: str = "numbers", *, site: str | None = None, **options: Any
) -> dict[str, Any]:
    """Returns what the template needs of the scope. Without Redis its live numbers are marked as
    not known.
    """
    tabs = _tabs(scope)
    tab = tab if tab in tabs else "numbers"
    found = Numbers(scope, tabs[tab], shown=tables.SHOWN, **options)
    shown = {name: tables.table_named(name, found) for name in tabs[tab]}
    heads = [row for table in shown.values() for row in table.rows[: table.shown]]
    found.objects.load(row.filters["object"] for row in heads if "object" in row.filters)
    chart, now = shown.pop("over-time", None), shown.pop("now", None)
    steps = shown["funnel"].values("count")[1:] if "funnel" in shown else ()
    if "funnel" in shown and not any(steps) and not any(map(enters_funnel, scope.models)):
        del shown["funnel"]  # the site uses none
    scope = found.scope if chart else scope
    here = {} if tab == "numbers" else {"tab": tab}
    return {
        "scope": scope,
        "found": found,
        "files": FILES,
        "periods": [
            (label, scope.address(period=one, **here), one == scope.period)
            for one, label in PERIODS.items()
        ],
        "tabs": [
            (TABS[name], scope.address(tab="" if name == "numbers" else name), name == tab)
            for name in tabs
        ],
        "last_day": scope.span.until - MOMENT,
        "kept": parse_qsl(scope.address(period="", **here)[1:]),
        "chips": _chips(found, scope, here),
        **(_chart(found, chart, now) if chart and now else {}),
        "tables": [_shown(table, scope, site) for table in shown.values()],
        "has_period": tab != "sections",  # which is of now
        "notices": [
            _(words)
            for notice, words in NOTICES.items()
            if sum(by[notice] for by in found.skips[:24])
        ],
    }


def _figures(found: Numbers) -> list[dict[str, Any]]:
    """Returns the totals of the period, each with that of the period before and the change."""
    before, total = found.totals
    (_run, _notes, until), as_of, is_summed = found.flush_and_notes, "", found.is_summed
    names = (_("Views"), _("New visitors"), _("Reads"))[: 3 if is_summed else 1]
    befores: list[int | None] = [*before] if before else [None] * 3
    if (
        is_summed and found.scope.is_present and not found.scope.is_listed
    ):  # by full flushes, all but the views
        if until:
            local, now = (
                timezone.localtime(buckets.time_of(until)),
                timezone.localtime(buckets.now()),
            )
            as_of = date_format(
                local, "TIME_FORMAT" if local.date() == now.date() else "DATETIME_FORMAT"
            )
        if found.scope.by == "hour":
            befores[1:] = None, None
    return [
        {
            "label": label,
            "value": exact(now),
            "before": None if before is None else exact(before),
            "change": tables.text(tables.change(now, before), "change") if before else "",
            "trend": "" if not before or now == before else "up" if now > before else "down",
            "as_of": as_of if place else "",
        }
        for place, (label, now, before) in enumerate(zip(names, total, befores, strict=False))
    ]


def _chart(found: Numbers, table: tables.Table, now: tables.Table) -> dict[str, Any]:
    """Returns the figures, and the chart for wide and for narrow screens with its numbers as a
    table and as text.
    """
    (before, total), (run, notes, _until) = found.totals, found.flush_and_notes
    starts, first_column = (
        [
            date_format(timezone.localtime(start), str(formats[found.scope.by]))
            for start in found.starts
        ]
        for formats in (FORMATS, WITH_YEAR)
    )
    series = {name: table.values(name) for name in ("before", "views", "visitors", "reads")}
    ends = (found.scope.span.since, found.scope.span.until - MOMENT)
    first, last = (date_format(timezone.localtime(end), "DATE_FORMAT") for end in ends)
    span = (
        first
        if first == last
        else pgettext("period", "%(first)s to %(last)s") % {"first": first, "last": last}
    )
    numbers = {name: exact(number) for name, number in total._asdict().items()}
    summary = _("%(views)s views, %(visitors)s new visitors and %(reads)s reads; %(span)s.") % {
        **numbers,
        "span": span,
    }
    drawn = [
        charts.lines(
            table.title,
            starts,
            series,
            description=summary,
            notes=table.values("notes"),
            is_narrow=one,
        )
        for one in (False, True)
    ]
    places = [
        place
        for place, one in enumerate(table.columns)
        if one.name != "before" or found.is_compared
    ]
    rows = [
        (start, [tables.text(row.values[place], table.columns[place].kind) for place in places[1:]])
        for start, row in zip(first_column, table.rows, strict=True)
    ]
    values = {
        "labels": [_("Period"), *(str(column.heading) for column in table.columns[1:])],
        "totals": [span, before.views if before else None, *total],
        "columns": [column.name for column in table.columns],
        "rows": [row.values for row in table.rows],
    }
    return {
        "figures": _figures(found),
        "now": now,
        "recent": tables.text(found.recent, "number"),
        "last_flush": run,
        "last_flush_when": naturaltime(run.ended) if run and run.ended else "",
        "is_late": run
        and buckets.now() - buckets.now(run.ended)
        > runs.late_after(),  # beat or its worker may be down
        "charts": drawn,
        "summary": summary,
        "chart": table,
        "chart_columns": [table.columns[place] for place in places],
        "chart_rows": rows,
        "chart_values": json.dumps(values),
        "notes": [(date_format(day, "DATE_FORMAT"), words) for day, words in notes.items()],
    }


def _shown(table: tables.Table, scope: Scope, site: str | None) -> dict[str, Any]:
    """Returns a table as the template needs it: its first rows with the values as text, and with
    links.
    """
    rows = []
    # In other tables the file is two clicks away already.
    sources = dimension_names()[:1] if table.name == "grew-most" else ()
    for row in table.rows[: table.shown]:
        cells: list[dict[str, Any]] = [
            {"column": column, "text": tables.text(value, column.kind)}
            for column, value in zip(table.columns, row.values, strict=True)
        ]
        link = ""  # to the object's page, or to the dashboard with a filter more
        if "object" not in scope.chosen and not row.filters.items() <= scope.chosen.items():
            link = scope.address(**row.filters)
            if "object" in row.filters:
                link = numbers_url(row.values[0], site=site) + scope.address(
                    **dict.fromkeys(scope.chosen, "")
                )
        if link and sources:
            file = f"{link}&{urlencode({'table': f'by-{sources[0]}', 'format': 'csv'})}"
            cells[0].update(
                file=file, file_title=tables.of_all_time(tables.words_of(sources[0])[0])
            )
        rows.append((cells[0], cells[1:], link, address_of(row.values[0])))
    return {"table": table, "rows": rows}


def _chips(found: Numbers, scope: Scope, here: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Returns the filters in force: name, value, and the address of the page without each."""
    labels = {"model": _("Model"), "category": _("Category"), "author": _("Author")}
    models = {label_of(model): str(model._meta.verbose_name_plural) for model in counted_models()}
    chips = []
    for name, value in scope.chosen.items():
        if name in scope.fixed:
            continue
        words = models.get(value, value)
        if name in {"category", "author"}:
            model, pk = (name == "category" and parse_subject(value)) or (get_user_model(), value)
            words = name_of(
                found.objects.chosen(name) or model._default_manager.filter(pk=pk).first() or value
            )
        chips.append(
            (
                labels.get(name) or tables.words_of(name)[1],
                words,
                scope.address(**{name: ""}, **here),
            )
        )
    return chips
