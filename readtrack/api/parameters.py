"""The parameters of questions: what each may be, and how it is read.

Anybody may send anything, so each text is examined before it goes further. What a text means is
decided by the dashboard's scope.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from readtrack.api.errors import bad_parameter
from readtrack.lines import CONTROL
from readtrack.numbers.scope import (
    COMPARISONS,
    INTERVALS,
    LONGEST,
    PERIODS,
    PUBLISHED,
    dimension_names,
)
from readtrack.subjects import counted_models, label_of

MOST_ROWS = 1_000
DEFAULT_ROWS = 10
# Not what `int` and `date.fromisoformat` take: they know digits of other scripts, and weeks.
NUMBER = re.compile("[0-9]{1,6}")
DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")

Kind = Literal["choice", "text", "day", "number"]
#: What is wrong with a value that a kind of parameter cannot be.
PROBLEMS: Mapping[Kind, str] = {
    "choice": "cannot be that",
    "text": f"is no text of 1 to {LONGEST} characters without control characters",
    "day": "is no day such as 2026-11-20",
    "number": f"is no whole number from 1 to {MOST_ROWS}",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a question. `choices` returns the texts that a "choice" may be."""

    name: str
    kind: Kind
    description: str
    choices: Callable[[], Sequence[str]] = tuple
    is_required: bool = False

    @property
    def is_offered(self) -> bool:
        """Returns False if nothing can be chosen, as where a site has no dimensions."""
        return self.kind != "choice" or bool(self.choices())

    @property
    def schema(self) -> dict[str, Any]:
        """Returns the JSON Schema of its values."""
        schema: dict[str, Any] = {"type": "string", "description": self.description}
        if self.kind == "choice":
            schema["enum"] = [*self.choices()]
        elif self.kind == "day":
            schema["format"] = "date"
        elif self.kind == "number":
            schema |= {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_ROWS,
                "default": DEFAULT_ROWS,
            }
        else:
            schema |= {"minLength": 1, "maxLength": LONGEST}
        return schema


def _labels() -> list[str]:
    return [label_of(model) for model in counted_models()]


#: The parameters that several questions have, by name.
COMMON: Mapping[str, Parameter] = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            "period",
            "choice",
            "The period, up to today: a number is a number of days. `7` without it. `published` is"
            " since the publication of the object.",
            lambda: [*PERIODS, PUBLISHED],
        ),
        Parameter("from", "day", "In place of a period: its first day, with `to`."),
        Parameter("to", "day", "In place of a period: its last day, with `from`."),
        Parameter(
            "compare",
            "choice",
            "What the period is compared with: the period `before`, the same days a `week` or a"
            " `year` earlier, or `none`. Without it a single day is compared with the day a week"
            " earlier, and a longer period with the one before. What was published after the start"
            " of that period is not in `grew`, because all its views would be more than before; its"
            " `why` is known in the period `published` only.",
            lambda: [*COMPARISONS],
        ),
        Parameter(
            "interval",
            "choice",
            "The length of a point of time; it goes by the period without it.",
            lambda: [*filter(None, INTERVALS)],
        ),
        Parameter("model", "choice", "Only the objects of this model.", _labels),
        Parameter(
            "object",
            "text",
            "Only this object: the label of its model and its primary key, such as `blog.post:42`."
            " The rows of other answers have it.",
        ),
        Parameter(
            "category",
            "text",
            "Only the objects of this category: the label of its model and its primary key, such as"
            " `blog.category:3`.",
        ),
        Parameter("author", "text", "Only the objects of the user with this primary key."),
        Parameter(
            "dimension",
            "choice",
            "With `value`: only views with this value of this dimension.",
            dimension_names,
        ),
        Parameter("value", "text", "The value of the `dimension`, such as `DE` for a country."),
        Parameter("limit", "number", "The number of rows at most."),
    )
}


def texts_of(given: Mapping[str, Any], parameters: Iterable[Parameter]) -> dict[str, str]:
    """Returns the values of parameters as texts.

    A value of None counts as not given. Raises QuestionError for a name or a value that no
    parameter has, and for a parameter that is missing.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    texts = {}
    for name, value in given.items():
        parameter = by_name.get(name)
        if parameter is None:
            raise bad_parameter(name[:100], "There is no such parameter here.", allowed=[*by_name])
        if value is not None:
            texts[name] = _text(parameter, value)
    for parameter in by_name.values():
        if parameter.is_required and parameter.name not in texts:
            raise bad_parameter(
                parameter.name, f"{parameter.name} is missing.", allowed=parameter.choices()
            )
    return texts


def _text(parameter: Parameter, value: Any) -> str:
    """Returns a valid value as text. Raises QuestionError for any other value."""
    text = _plain_text(parameter, value)
    if not text or not _is_valid(parameter, text):
        message = f"{parameter.name} {PROBLEMS[parameter.kind]}."
        raise bad_parameter(parameter.name, message, allowed=parameter.choices())
    return text


def _plain_text(parameter: Parameter, value: Any) -> str:
    """Returns a value as text; "" for one that is too long, or that no parameter can have."""
    is_whole_number = isinstance(value, int) and not isinstance(value, bool)
    # Assistants send numbers as numbers.
    if parameter.kind == "number" and is_whole_number and 0 <= value <= MOST_ROWS:
        return str(value)
    if not isinstance(value, str) or len(value) > LONGEST or CONTROL.search(value):
        return ""
    return value


def _is_valid(parameter: Parameter, text: str) -> bool:
    """Returns True for a text that the parameter may be."""
    if parameter.kind == "choice":
        return text in parameter.choices()
    if parameter.kind == "day":
        return _is_day(text)
    if parameter.kind == "number":
        return bool(NUMBER.fullmatch(text)) and 1 <= int(text) <= MOST_ROWS
    return True


def _is_day(text: str) -> bool:
    if not DAY.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:  # the 31st of a shorter month
        return False
    return True
