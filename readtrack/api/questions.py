"""The questions that programs may ask: each is a table of the dashboard, or of another part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from readtrack import parts
from readtrack.api.parameters import COMMON, Parameter
from readtrack.numbers.loading import SKIP_HOURS
from readtrack.numbers.options import numbers_options
from readtrack.numbers.scope import dimension_names
from readtrack.subjects import read_state_models

DAYS = ("period", "from", "to")
FILTERS = ("model", "category", "author")
VALUES = ("dimension", "value")
#: The columns that the rows of objects have beside their numbers.
DETAILS = ("url", "category", "author", "published")

TABLES_OF_GROUPS: Mapping[str, str] = {
    "category": "views-by-section",
    "author": "views-by-author",
    "age": "views-by-age",
}
TABLES_OF_REFUSED: Mapping[str, str] = {"reason": "not-counted", "robot": "robots"}

DIMENSION = Parameter(
    "dimension",
    "choice",
    "What the views are divided by.",
    dimension_names,
    is_required=True,
)
GROUP = Parameter(
    "group",
    "choice",
    "What objects are put together by: their category, their author or their age.",
    lambda: [*TABLES_OF_GROUPS],
    is_required=True,
)
REFUSED = Parameter(
    "group",
    "choice",
    "What refused requests are put together by: the reason, or the name of the robot.",
    lambda: [*TABLES_OF_REFUSED],
    is_required=True,
)


# Returns the rows of an answer to a user by the texts of parameters; None while Redis is down.
RowsFor = Callable[[Any, Mapping[str, str]], Sequence[Mapping[str, Any]] | None]


def _no_table(texts: Mapping[str, str]) -> str:
    return ""


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Question:
    """A question: a table of the dashboard for a scope.

    `table` returns the name of the table by the texts of parameters. `columns` are keys of
    `tables.COLUMNS`, or names of columns of texts.

    The question of another part has no table, but a function that returns the rows: it decides what
    the user may see. Each row has all columns, and "filters".
    """

    name: str
    description: str
    table: Callable[[Mapping[str, str]], str] = _no_table
    columns: Sequence[str] = ()
    common: Sequence[str] = ()  # names of parameters that other questions have, too
    own: Sequence[Parameter] = ()  # further parameters
    kept_hours: int = 0  # of which there are numbers; 0 where a period may be of any age
    is_of_site: bool = False  # only for users who may see the numbers of the whole site
    is_offered: Callable[[], bool] = _always  # whether the site has such numbers
    rows_for: RowsFor | None = None  # of a question without a table
    # JSON Schemas of columns that no table of the dashboard has, by name
    own_columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def parameters(self) -> list[Parameter]:
        """Returns the parameters of the question."""
        return [*self.own, *(COMMON[name] for name in self.common)]

    @property
    def offered_parameters(self) -> list[Parameter]:
        """Returns those that can have a value on this site."""
        return [parameter for parameter in self.parameters if parameter.is_offered]

    @property
    def has_period(self) -> bool:
        """Returns True if the answer is about a period. Otherwise it is about now."""
        return "period" in self.common

    @property
    def has_totals(self) -> bool:
        """Returns True if the answer has the totals of the period."""
        return "interval" in self.common


def _has_history() -> bool:
    return numbers_options().history


QUESTIONS: Sequence[Question] = (
    Question(
        "numbers",
        "Views, visitors, seen views and reads of the site, a model, a category, an author or an"
        " object in a period: the totals, and one row for each hour, day, week or month.",
        lambda texts: "over-time",
        (
            "since",
            "views",
            "visitors",
            "reads",
            "seen",
            "unseen",
            "before",
            "usual_low",
            "usual_high",
            "notes",
        ),
        common=(*DAYS, "compare", "interval", "object", *FILTERS, *VALUES),
    ),
    Question(
        "top",
        "The objects with the most views in a period.",
        lambda texts: "most-viewed",
        ("title", "views", "before", "change", "usual", "visitors", "reads", *DETAILS),
        common=(*DAYS, "compare", *FILTERS, *VALUES, "limit"),
    ),
    Question(
        "grew",
        "The objects that gained the most views on the period before, of those that were published"
        " before it.",
        lambda texts: "grew-most",
        ("title", "growth", "views", "before", "change", "usual", *DETAILS),
        common=(*DAYS, "compare", *FILTERS, *VALUES, "limit"),
    ),
    Question(
        "breakdown",
        "The views of a period by the values of a dimension, such as sources, countries or"
        " devices.",
        lambda texts: f"by-{texts['dimension']}",
        ("value", "views", "before", "change", "share"),
        common=(*DAYS, "compare", "object", *FILTERS, "limit"),
        own=(DIMENSION,),
        is_offered=lambda: bool(dimension_names()),
    ),
    Question(
        "reading",
        "The objects whose texts were really read most often in a period, with the median time"
        " (seconds).",
        lambda texts: "really-read",
        ("title", "reads", "before", "change", "views", "ratio", "median", *DETAILS),
        common=(*DAYS, "compare", "object", *FILTERS, "limit"),
    ),
    Question(
        "funnel",
        "The stages of the funnel in a period: how often each was reached.",
        lambda texts: "funnel",
        ("title", "count", "before", "change", "rate", "step_rate"),
        common=(*DAYS, "compare", "object", *FILTERS, "limit"),
        is_offered=lambda: bool(parts.stages()),
    ),
    Question(
        "groups",
        "The views, visitors and reads of a period by category, by author, or by the age of the"
        " objects.",
        lambda texts: TABLES_OF_GROUPS[texts["group"]],
        ("title", "views", "before", "change", "share", "visitors", "reads"),
        common=(*DAYS, "compare", *FILTERS, "limit"),
        own=(GROUP,),
        is_offered=_has_history,
    ),
    Question(
        "still_read",
        "The objects with the most views in a period among those that were published long before.",
        lambda texts: "still-read",
        ("title", "views", "before", "change", "reads", *DETAILS),
        common=(*DAYS, "compare", *FILTERS, "limit"),
        is_offered=_has_history,
    ),
    Question(
        "unread",
        "The categories with the number of readers who have read them since the last publication,"
        " and of accounts that have not.",
        lambda texts: "sections",
        ("title", "readers", "unread", "share"),
        common=("model", "limit"),
        is_of_site=True,
        is_offered=lambda: bool(read_state_models()),
    ),
    Question(
        "refused",
        "The requests of the last 48 hours that did not count as views, by reason or by robot.",
        lambda texts: TABLES_OF_REFUSED[texts["group"]],
        ("title", "hits", "share", "yesterday"),
        common=(*DAYS, "limit"),
        own=(REFUSED,),
        kept_hours=SKIP_HOURS,
        is_of_site=True,
    ),
    Question(
        "trending",
        "The objects with the most views in the last hour.",
        lambda texts: "trending",
        ("title", "views", *DETAILS),
        common=(*FILTERS, "limit"),
    ),
    Question(
        "now",
        "The number of people of the last five minutes; with a filter by category, author or"
        " object the number of views.",
        lambda texts: "now",
        ("now",),
        common=("object", *FILTERS),
    ),
)


def questions() -> dict[str, Question]:
    """Returns the questions by name, without those whose numbers the site does not have."""
    every = [*QUESTIONS]
    for part in parts.installed():
        every += part.questions(Question)
    return {question.name: question for question in every if question.is_offered()}
