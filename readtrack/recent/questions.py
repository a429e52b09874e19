"""The question of programs: what the user of their token opened lately."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from readtrack import subjects, texts
from readtrack.hits.visitors import user_id
from readtrack.recent.openings import openings
from readtrack.recent.options import recent_options
from readtrack.recent.reports import objects_of
from readtrack.store.circuit import fail_open


def rows_for(user: Any, given: Mapping[str, str]) -> Sequence[Mapping[str, Any]] | None:
    """Returns the objects that the user opened, the last one first; None while Redis is down."""
    found = fail_open(openings, None, user_id(user.pk))
    if found is None:
        return None
    model = subjects.model_with_label(given["model"]) if "model" in given else None
    return [_row(obj) for obj in objects_of(found, len(found), model=model)]


def _row(obj: Any) -> Mapping[str, Any]:
    return {
        "title": texts.line_of(obj),
        "url": texts.address_of(obj) or None,
        "opened": obj.opened_at.isoformat(),
        "filters": {"object": subjects.subject_of(obj)},
    }


def _is_offered() -> bool:
    return bool(recent_options().labels)


def recently_viewed(question: Callable[..., Any]) -> Any:
    """Returns the question, made by the class of the part that has the API."""
    return question(
        "recently_viewed",
        "The objects that the user of the token opened last, on the site itself.",
        columns=("title", "url", "opened"),
        common=("model", "limit"),
        is_offered=_is_offered,
        rows_for=rows_for,
        own_columns={"opened": {"type": "string", "format": "date-time"}},
    )
