"""The setting IMPORTS: which objects the pages of a site show."""

from collections.abc import Mapping
from typing import Any

from readtrack.conf import conf

KEYS = ("views",)


def view_rules() -> Mapping[str, Any]:
    """Returns the rules by the name of a view. `pages.subject_at` says what a rule may be."""
    rules: Mapping[str, Any] = conf.of_part("IMPORTS").get("views", {})
    return rules


def import_problems() -> list[str]:
    """Returns what is wrong with IMPORTS, a sentence for each problem."""
    problems = [f"it has no key {key!r}" for key in conf.of_part("IMPORTS") if key not in KEYS]
    rules = view_rules()
    if not isinstance(rules, Mapping):
        return [*problems, f"'views' is {rules!r}, which is no dict"]
    for name, rule in rules.items():
        if not _is_rule(rule):
            problems.append(f"'views' has {rule!r} for {name!r}")
    return problems


def _is_rule(rule: Any) -> bool:
    """Returns True for a function, for the label of a model, and for a tuple that begins with
    one.
    """
    if callable(rule) or isinstance(rule, str):
        return True
    is_tuple = isinstance(rule, (list, tuple)) and len(rule) in (2, 3)
    return is_tuple and all(isinstance(word, str) for word in rule)
