"""The scope of a question: what the dashboard's page would show to this user for it.

The dashboard leaves out what an address has and cannot mean. A program would take the answer for
that to another question, so here it is an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model

from readtrack import buckets
from readtrack.access import is_author, may_view_numbers
from readtrack.api.errors import bad_parameter, not_allowed, not_found
from readtrack.numbers import local_time
from readtrack.numbers.access import may_view_report_of
from readtrack.numbers.objects import with_links
from readtrack.numbers.published import published_at
from readtrack.numbers.scope import DEFAULT_PERIOD, Scope
from readtrack.sql import databases
from readtrack.subjects import (
    counted_models,
    key_in,
    label_of,
    parse_subject,
    read_state_models,
    subject_of_row,
)

FILTERS_OF_MANY = ("model", "category", "author")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for, as far as its user may see it."""

    scope: Scope
    sees_all: bool  # the user may see the numbers of the whole site
    obj: Model | None = None  # the only object of the scope


def asked_by(user: Any, texts: Mapping[str, str]) -> Asked:
    """Returns what the user asks for by valid texts of parameters.

    Raises QuestionError for what the user may not see, for what does not exist, and for texts that
    do not go together.
    """
    _check_period(texts)
    sees_all = may_view_numbers(user)
    if "object" in texts:
        _check_beside_object(texts)
        obj = _visible_object(user, texts, sees_all=sees_all)
        scope = Scope.parse(
            _address(texts), fixed={"object": _subject(texts)}, published=published_at(obj)
        )
        asked = Asked(scope, sees_all, obj)
    elif sees_all:
        _check_category(texts)
        _check_author(texts)
        asked = Asked(Scope.parse(_address(texts)), sees_all)
    else:
        fixed = {"author": _own_report(user, texts)}
        asked = Asked(Scope.parse(_address(texts), fixed=fixed), sees_all)
    _check_taken(texts, asked.scope)
    return asked


def _address(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the parameters as the address of the dashboard has them."""
    address = {name: texts[name] for name in ("from", "to", "compare") if name in texts}
    if "from" not in texts:
        # An object's page has another default. Here an answer means the same for each object.
        address["period"] = texts.get("period", DEFAULT_PERIOD)
    if "interval" in texts:
        address["by"] = texts["interval"]
    for name in ("model", "category", "author"):
        if name in texts:
            address[name] = texts[name]
    if "value" in texts:
        address[texts["dimension"]] = texts["value"]
    return address


def _check_period(texts: Mapping[str, str]) -> None:
    """Raises QuestionError for a period and days that do not go together."""
    if "from" not in texts and "to" not in texts:
        return
    if "period" in texts:
        raise bad_parameter("period", "Give either a period, or from and to.")
    if "from" not in texts or "to" not in texts:
        raise bad_parameter("from", "Give both days, from and to.")
    first_day = date.fromisoformat(texts["from"])
    last_day = date.fromisoformat(texts["to"])
    if first_day > last_day:
        raise bad_parameter("from", "from is later than to.")
    if first_day > local_time.day_of(buckets.now()):
        raise bad_parameter("from", "from lies in the future.")


def _check_beside_object(texts: Mapping[str, str]) -> None:
    """Raises QuestionError for a filter that the numbers of one object do not have."""
    for name in FILTERS_OF_MANY:
        if name in texts:
            raise bad_parameter(name, f"The numbers of one object cannot be filtered by {name}.")


def _check_taken(texts: Mapping[str, str], scope: Scope) -> None:
    """Raises QuestionError for what the period of the scope cannot have."""
    if texts.get("period", scope.period) != scope.period:
        message = "published needs an object whose publication is known."
        raise bad_parameter("period", message, allowed=[*scope.periods])
    if "compare" in texts and texts["compare"] not in scope.comparisons:
        message = f"The period {scope.period} cannot be compared so."
        raise bad_parameter("compare", message, allowed=scope.comparisons)


def check_interval(texts: Mapping[str, str], scope: Scope) -> None:
    """Raises QuestionError for a length of a point that the period cannot have.

    `scope` is the one that was loaded: before that, all time has no beginning.
    """
    if "interval" in texts and texts["interval"] != scope.interval:
        message = "This period would have too many points of that length, or a single one."
        raise bad_parameter("interval", message, allowed=scope.intervals)


def _subject(texts: Mapping[str, str]) -> str:
    """Returns the subject of the object; "" for a text that no counted object can have."""
    return Scope.parse({"object": texts["object"]}).chosen.get("object", "")


def _visible_object(user: Any, texts: Mapping[str, str], *, sees_all: bool) -> Model:
    """Returns the object, if the user may see its numbers. Raises QuestionError otherwise.

    A user who may not see all numbers is not told whether an object exists.
    """
    subject = _subject(texts)
    obj: Model | None = None
    if subject:
        scope = Scope.parse({"object": subject})
        obj = with_links(scope.rows(scope.models[0])).first()
    if not sees_all and not (obj and may_view_numbers(user, obj)):
        raise not_allowed("You may not see the numbers of this object.")
    if not subject or key_in(subject) != key_in(texts["object"]):
        labels = [f"{label_of(model)}:…" for model in counted_models()]
        raise bad_parameter("object", "That is no subject of an object.", allowed=labels)
    if obj is None:
        raise not_found("object", "There is no such object.")
    return obj


def _check_category(texts: Mapping[str, str]) -> None:
    """Raises QuestionError for a category that does not exist."""
    if "category" not in texts:
        return
    scope = Scope.parse({"category": texts["category"]})
    parsed = parse_subject(scope.chosen.get("category", ""))
    if parsed is None or key_in(subject_of_row(*parsed)) != key_in(texts["category"]):
        labels = [f"{label_of(model)}:…" for model in read_state_models()]
        raise bad_parameter("category", "That is no subject of a category.", allowed=labels)
    model, pk = parsed
    if not databases.rows(model).filter(pk=pk).exists():
        raise not_found("category", "There is no such category.")


def _check_author(texts: Mapping[str, str]) -> None:
    """Raises QuestionError for an author who does not exist."""
    if "author" not in texts:
        return
    scope = Scope.parse({"author": texts["author"]})
    if "author" not in scope.chosen:
        raise bad_parameter("author", "That is no primary key of a user.")
    pk = databases.rows(get_user_model()).filter(pk=texts["author"]).values_list("pk", flat=True)
    if texts["author"] not in map(str, pk):
        raise not_found("author", "There is no such user.")


def _own_report(user: Any, texts: Mapping[str, str]) -> str:
    """Returns the user's primary key as text, if the user may see the report of own objects."""
    own_pk = str(user.pk)
    if not may_view_report_of(user, own_pk):
        raise not_allowed("You may not see the numbers of the site.")
    if "author" in texts and not is_author(user, texts["author"]):
        raise not_allowed("You may see the numbers of your own objects only.")
    if "category" in texts:
        raise not_allowed("You may not see the numbers of a category.")
    return own_pk
