"""Answers to questions, as JSON has them. The numbers are those of the dashboard's files."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import Error
from django.utils import timezone

from readtrack import buckets
from readtrack.api.errors import bad_parameter, not_allowed, not_known, unknown_question
from readtrack.api.parameters import DEFAULT_ROWS, texts_of
from readtrack.api.questions import Question, questions
from readtrack.api.scopes import Asked, asked_by, check_interval
from readtrack.lines import one_line
from readtrack.numbers import tables
from readtrack.numbers.causes import Cause
from readtrack.numbers.data import ChartData, ScopeData
from readtrack.numbers.detailed import rounded, with_details
from readtrack.numbers.filters import chosen_in
from readtrack.numbers.loading import load
from readtrack.numbers.offered import tables_by_tab
from readtrack.numbers.scope import FILTERS, Scope, Span, dimension_names
from readtrack.numbers.story import story_verdict_of
from readtrack.numbers.totals import totals
from readtrack.numbers.verdict import verdict_of
from readtrack.numbers.words import lead
from readtrack.numbers.words_of_causes import sentences_of_cause
from readtrack.numbers.words_of_story import lead_of_story
from readtrack.sql import vendors
from readtrack.texts import line_of


def answer(name: str, user: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the answer to the question called `name` for the user, by the given parameters.

    Raises QuestionError if there is no such question, if the user may not see the answer, and for
    parameters that are not valid.
    """
    offered = questions()
    if name not in offered:
        raise unknown_question([*offered])
    question = offered[name]
    texts = texts_of(given, question.parameters)
    try:
        if question.rows_for is not None:
            rows = question.rows_for(user, texts)
            return _answer_of_part(question, rows, limit=int(texts.get("limit", DEFAULT_ROWS)))
        return _answer(question, user, texts)
    except Error as error:
        if not vendors.is_impossible_value(error):
            raise
        # Such as a primary key that is valid for Django, and too large for the column.
        raise bad_parameter("", "The database cannot have one of these values.") from error


def _answer(question: Question, user: Any, texts: Mapping[str, str]) -> dict[str, Any]:
    _check_value(question, texts)
    asked = asked_by(user, texts)
    table_name = question.table(texts)
    if question.is_of_site and not asked.sees_all:
        raise not_allowed("You may not see the numbers of the site.")
    if not any(table_name in names for names in tables_by_tab(asked.scope).values()):
        raise not_known("There are no such numbers for this period and these filters.")
    table_names, row_limit = _needed(question, asked.scope, table_name)
    data = load(
        asked.scope, table_names, sees_all=asked.sees_all, obj=asked.obj, row_limit=row_limit
    )
    check_interval(texts, data.scope)
    table = tables.table_named(table_name, data)
    content: dict[str, Any] = {"question": question.name}
    if question.has_period:
        content["period"] = _period(question, asked, data)
    content["is_complete"] = data.is_whole
    content["remark"] = one_line(str(table.caption if table.rows else table.empty))
    if question.has_totals:
        content["interval"] = data.scope.by
        content["totals"] = _totals(data)
        content["times_usual"] = _times_usual(data)
        content.update(_verdict(data))
    content["row_count"] = len(table.rows)
    if "limit" in question.common:
        table = table._replace(rows=table.rows[: int(texts.get("limit", DEFAULT_ROWS))])
    content["rows"] = _rows(question, table, data)
    return content


def _needed(question: Question, scope: Scope, table_name: str) -> tuple[list[str], int]:
    """Returns the tables that the answer is made of, and the rows of objects that they need; 0 for
    all.

    Beside totals it is said which object has the largest share of the views, and of a single object
    why its views rose or fell, which makes one query.
    """
    if not question.has_totals or scope.values:
        return [table_name], 0
    if "object" in scope.chosen:
        # Of all time nothing is compared.
        names = [] if scope.is_all_time else dimension_names()
        return [table_name, *(f"by-{name}" for name in names)], 0
    return [table_name, "most-viewed"], 1


def _answer_of_part(
    question: Question, rows: Sequence[Mapping[str, Any]] | None, *, limit: int
) -> dict[str, Any]:
    """Returns the answer to the question of another part, which has loaded the rows."""
    loaded = rows or ()
    return {
        "question": question.name,
        "is_complete": rows is not None,
        "remark": question.description,
        "row_count": len(loaded),
        "rows": [*loaded[:limit]],
    }


def _check_value(question: Question, texts: Mapping[str, str]) -> None:
    """Raises QuestionError for a filter by a value without its dimension, or the other way
    round.
    """
    if "value" not in question.common:
        return
    if "value" in texts and "dimension" not in texts:
        raise bad_parameter("dimension", "Say of which dimension the value is.")
    if "dimension" in texts and "value" not in texts:
        raise bad_parameter("value", "Say which value of the dimension you mean.")


def _period(question: Question, asked: Asked, data: ScopeData) -> dict[str, Any]:
    """Returns the period of the answer and the one that it is compared with."""
    is_compared = data.is_compared and "compare" in question.common
    before = data.scope.before if is_compared else None
    compared_until = None
    if before is not None and data.scope.compared is not None:
        compared_until = timezone.localtime(data.scope.compared.until).isoformat()
    since = _since(question, data.scope)
    return {
        "name": asked.scope.period,
        "since": None if since is None else timezone.localtime(since).isoformat(),
        "until": timezone.localtime(data.scope.span.until).isoformat(),
        "compared_until": compared_until,
        "compared_with": None if before is None else _ends_of(before),
    }


def _since(question: Question, scope: Scope) -> datetime | None:
    """Returns when that part of the period began of which there are numbers; None for all time.

    If there are none of the whole period, it is the beginning of the period.
    """
    span = scope.span
    if not question.kept_hours:
        return None if scope.is_all_time else span.since
    first_hour = buckets.hour_index(buckets.now()) + 1 - question.kept_hours
    kept_since = buckets.hour_start(first_hour)
    if scope.is_all_time:
        return kept_since
    if span.until <= kept_since:
        return span.since
    return max(span.since, kept_since)


def _ends_of(span: Span) -> dict[str, str]:
    since, until = map(timezone.localtime, span)
    return {"since": since.isoformat(), "until": until.isoformat()}


def _totals(data: ScopeData) -> dict[str, Any]:
    """Returns the totals of the period by name; None for one that is not known.

    `compared` is the part of the count that `before` is compared with.
    """
    if data.chart is None:  # without a known number of any point
        return {}
    return {total.name: _total(total, data.chart) for total in totals(data, data.chart)}


def _total(total: Any, chart: ChartData) -> dict[str, Any]:
    before = total.before if chart.is_before_whole else None
    change = None
    if before is not None and total.compared is not None:
        change = tables.change(total.compared, before)
    return {
        "count": total.now,
        "compared": None if before is None else total.compared,
        "before": before,
        "change": change,
    }


def _verdict(data: ScopeData) -> dict[str, Any]:
    """Returns how the period went, or how the only object does: as a word, and as sentences."""
    filters = chosen_in(data)
    if "object" in data.asked.chosen:
        of_story = story_verdict_of(data, filters)
        return {
            "verdict": of_story.word,
            "summary": one_line(lead_of_story(of_story).text),
            "why": _why(of_story.cause),
        }
    verdict = verdict_of(data, filters)
    return {"verdict": verdict.word, "summary": one_line(lead(verdict).text), "why": None}


def _why(cause: Cause | None) -> dict[str, Any] | None:
    """Returns why the views of an object rose or fell, and the numbers that this goes by; None if
    it is not known.
    """
    if cause is None:
        return None
    values = []
    for part in cause.parts:
        value = {"dimension": part.dimension, "value": part.value}
        values.append({**value, "views": part.now, "before": part.before})
    return {
        "kind": cause.kind,
        "sentence": one_line(" ".join(sentences_of_cause(cause))),
        "views": cause.now,
        "before": None if cause.is_since_publication else cause.before,
        "values": values,
    }


def _times_usual(data: ScopeData) -> float | None:
    """Returns how many times the usual views the only object of the scope has."""
    subject = data.asked.chosen.get("object", "")
    if subject not in data.usual:
        return None
    return round(data.usual[subject].times, 2)


def _rows(question: Question, table: tables.Table, data: ScopeData) -> list[dict[str, Any]]:
    """Returns the rows, each with a value for every column of the question.

    A value is None if it is not known, and if the table lacks the column. `filters` are the
    parameters that choose what the row shows.
    """
    data.objects.load(row.filters["object"] for row in table.rows if "object" in row.filters)
    detailed = with_details(table)
    column_names = [column.name for column in detailed.columns]
    column_names[0] = question.columns[0]  # by its own name: `section` or `country`
    rows = []
    for row in detailed.rows:
        values = dict(zip(column_names, map(_plain, row.values), strict=True))
        shown: dict[str, Any] = {name: values.get(name) for name in question.columns}
        shown["filters"] = _filters(row.filters)
        rows.append(shown)
    return rows


def _plain(value: Any) -> Any:
    """Returns a value of a table as JSON has it: a number, a text or None."""
    if value is None or isinstance(value, (int, float)):
        return rounded(value)
    return line_of(value)


def _filters(filters: Mapping[str, str]) -> dict[str, str]:
    """Returns the filters of a row as parameters of a question."""
    parameters = {}
    for name, value in filters.items():
        if name in FILTERS:
            parameters[name] = value
        else:
            parameters |= {"dimension": name, "value": value}
    return parameters
