"""The JSON Schemas of questions and answers, which OpenAPI and assistants get."""

from collections.abc import Mapping
from typing import Any, get_args

from readtrack.api.questions import Question
from readtrack.numbers.causes import Kind
from readtrack.numbers.tables import COLUMNS, ValueKind
from readtrack.numbers.usual import Word as StoryWord
from readtrack.numbers.verdict import Word as SiteWord

#: The types of the values of columns. A value of None is not known.
TYPES: Mapping[ValueKind, list[str]] = {
    "text": ["string", "null"],
    "number": ["integer", "null"],
    "change": ["integer", "null"],
    "share": ["number", "null"],
    "seconds": ["number", "null"],
    "times": ["number", "null"],
}
#: The columns that have another name, or other values, in the tables of the dashboard.
OWN_COLUMNS: Mapping[str, dict[str, Any]] = {
    "since": {"type": "string", "format": "date-time"},
    "title": {"type": "string"},
    "value": {"type": "string"},
    "now": {"type": ["integer", "null"]},
    "url": {"type": ["string", "null"], "description": "The address on the site."},
    "category": {"type": ["string", "null"]},
    "published": {"type": ["string", "null"], "format": "date"},
}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object that has all of these properties, and no others."""
    return {
        "type": "object",
        "properties": {**properties},
        "required": [*properties],
        "additionalProperties": False,
    }


_TIME: Mapping[str, Any] = {"type": "string", "format": "date-time"}
_ENDS = _object({"since": _TIME, "until": _TIME})
#: The schema of the period that an answer is about.
PERIOD = _object(
    {
        "name": {"type": "string"},
        "since": {**_TIME, "type": ["string", "null"], "description": "None for all time."},
        "until": _TIME,
        "compared_until": {
            **_TIME,
            "type": ["string", "null"],
            "description": "The end of the part that is compared: that of yesterday, or of today"
            " alone that of the last whole hour. None if nothing is compared.",
        },
        "compared_with": {"anyOf": [_ENDS, {"type": "null"}]},
    }
)
_COUNT: Mapping[str, Any] = {"type": ["integer", "null"]}
_TOTAL = _object(
    {
        "count": _COUNT,
        "compared": {**_COUNT, "description": "The part of the count that before is of."},
        "before": {**_COUNT, "description": "The count of the period before."},
        "change": {**_COUNT, "description": "In per cent."},
    }
)
_WHY: Mapping[str, Any] = {
    "anyOf": [
        _object(
            {
                "kind": {"type": "string", "enum": [*get_args(Kind)]},
                "sentence": {"type": "string"},
                "views": {"type": "integer"},
                "before": {**_COUNT, "description": "None since the publication."},
                "values": {
                    "type": "array",
                    "items": _object(
                        {
                            "dimension": {"type": "string"},
                            "value": {"type": "string"},
                            "views": {"type": "integer"},
                            "before": {"type": "integer"},
                        }
                    ),
                },
            }
        ),
        {"type": "null"},
    ],
    "description": "Why the views of the object rose or fell, and the numbers that this goes by;"
    " None if that is not known, or may be chance.",
}


def parameters_schema(question: Question) -> dict[str, Any]:
    """Returns the schema of an object with the parameters of the question."""
    parameters = question.offered_parameters
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.is_required],
        "additionalProperties": False,
    }


def answer_schema(question: Question) -> dict[str, Any]:
    """Returns the schema of the answers to the question."""
    properties: dict[str, Any] = {"question": {"type": "string", "enum": [question.name]}}
    if question.has_period:
        properties["period"] = PERIOD
    properties["is_complete"] = {
        "type": "boolean",
        "description": "False while Redis does not answer: the latest numbers are missing.",
    }
    properties["remark"] = {"type": "string", "description": "What the numbers are of."}
    if question.has_totals:
        properties["interval"] = {"type": "string"}
        properties["totals"] = {"type": "object", "additionalProperties": _TOTAL}
        properties["times_usual"] = {
            "type": ["number", "null"],
            "description": "How many times the usual views of its age the object has.",
        }
        properties["verdict"] = {
            "type": ["string", "null"],
            "enum": [*dict.fromkeys([*get_args(SiteWord), *get_args(StoryWord)]), None],
            "description": "How the period went, or how the object does; None if it is not known.",
        }
        properties["summary"] = {
            "type": "string",
            "description": "The same in sentences, as the dashboard and its mails say it.",
        }
        properties["why"] = _WHY
    properties["row_count"] = {"type": "integer", "description": "The rows without a limit."}
    row = {name: _column_schema(name, question) for name in question.columns}
    row["filters"] = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Parameters that choose what the row shows, for a further question.",
    }
    properties["rows"] = {"type": "array", "items": _object(row)}
    return _object(properties)


def _column_schema(name: str, question: Question) -> Mapping[str, Any]:
    """Returns the schema of the values of a column."""
    if name in question.own_columns:
        return question.own_columns[name]
    if name in OWN_COLUMNS:
        return OWN_COLUMNS[name]
    column = COLUMNS[name]
    return {"type": TYPES[column.value_kind], "description": str(column.heading)}
