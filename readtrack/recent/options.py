"""The setting RECENT: whose openings are kept, of which models, how many and for how long."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from readtrack.conf import cached_setting, conf
from readtrack.subjects import is_counted, label_of, model_with_label

KEPT = 20
DAYS = 30
MOST_KEPT = 200  # because all of them are loaded for a page
MOST_DAYS = 400
KEYS = ("models", "kept", "days", "visitors")


@dataclass(frozen=True, slots=True)
class RecentOptions:
    """The values of RECENT, with defaults for those that the site leaves out or that are wrong."""

    labels: frozenset[str]  # of the models whose objects are kept; none if the part is off
    kept: int  # objects of a reader
    days: int
    visitors: bool  # True: also visitors with the cookie


@cached_setting("INSTALLED_APPS")
def recent_options() -> RecentOptions:
    """Returns the options of RECENT. A check names values that cannot be used."""
    labels = [_label_of(name) for name in _models()]
    return RecentOptions(
        labels=frozenset(label for label in labels if label),
        kept=_number("kept", default=KEPT, most=MOST_KEPT),
        days=_number("days", default=DAYS, most=MOST_DAYS),
        visitors=conf.of_part("RECENT").get("visitors") is True,
    )


def _models() -> Sequence[Any]:
    """Returns what the site names as models; nothing if that is no list."""
    names = conf.of_part("RECENT").get("models", ())
    return names if isinstance(names, (list, tuple)) else ()


def _label_of(name: Any) -> str:
    """Returns the label in subjects of the model called `name`; "" if it has no counts."""
    model = model_with_label(name) if isinstance(name, str) else None
    if model is None or not is_counted(model):
        return ""
    return label_of(model)


def _number(key: str, *, default: int, most: int) -> int:
    """Returns the number that the site gives for the key, or the default."""
    number: int = conf.of_part("RECENT").get(key, default)
    return number if _is_number(number, most=most) else default


def _is_number(value: Any, *, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def recent_problems() -> list[str]:
    """Returns what is wrong with RECENT, a sentence for each problem."""
    given = conf.of_part("RECENT")
    if not given:
        return []
    problems = [f"it has no key {key!r}" for key in given if key not in KEYS]
    problems += _problems_of_models()
    for key, most in (("kept", MOST_KEPT), ("days", MOST_DAYS)):
        if key in given and not _is_number(given[key], most=most):
            problems.append(f"'{key}' is {given[key]!r}, which is no whole number from 1 to {most}")
    if not isinstance(given.get("visitors", False), bool):
        problems.append("'visitors' is neither True nor False")
    return problems


def _problems_of_models() -> list[str]:
    """Returns what is wrong with the models, a sentence for each problem."""
    names = _models()
    if not names:
        return ["'models' is no list of models, so nothing is kept"]
    unknown = [name for name in names if not _label_of(name)]
    return [f"'models' has {name!r}, which is no model with counts" for name in unknown]
