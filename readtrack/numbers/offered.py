"""Which tables there are of a scope, by the tab of the dashboard that shows them."""

from collections.abc import Sequence

from readtrack import parts
from readtrack.numbers import groups
from readtrack.numbers.options import numbers_options
from readtrack.numbers.published import published_field
from readtrack.numbers.scope import Scope, dimension_names
from readtrack.subjects import read_state_models


def tables_by_tab(scope: Scope) -> dict[str, Sequence[str]]:
    """Returns the names of the tables by tab, without tabs that would have no table.

    The page of one object has a single tab.
    """
    dimensions = [f"by-{name}" for name in dimension_names()]
    reading = ["really-read", "funnel"] if parts.stages() else ["really-read"]
    if "object" in scope.chosen:
        return {"numbers": ["over-time", *dimensions, *reading, "now"]}
    by_tab: dict[str, Sequence[str]] = {
        "numbers": ["over-time", "most-viewed", "trending", "now"],
        "growth": ["grew-most"] if scope.before else [],
        **_tables_of_looks(scope),
        "sources": dimensions,
        "reading": reading,
        **_tables_of_groups(scope),
    }
    if not scope.fixed:  # a page with fixed filters may be for users who may not see the whole site
        by_tab["sections"] = ["sections"] if read_state_models() else []
        by_tab["refused"] = ["not-counted", "robots"]
    return {tab: names for tab, names in by_tab.items() if names}


def _tables_of_looks(scope: Scope) -> dict[str, Sequence[str]]:
    """Returns the names of the tables of what does badly, by tab.

    Publications are compared with what is usual at their present age, so not in past periods.
    """
    if not numbers_options().history:
        return {}
    has_publications = any(published_field(model) for model in scope.models)
    below = ["below-usual"] if scope.is_present and has_publications else []
    return {"below": below, "hardly": ["hardly-read"]}


def _tables_of_groups(scope: Scope) -> dict[str, Sequence[str]]:
    """Returns the names of the tables of categories, authors and ages, by tab."""
    if not numbers_options().history:
        return {}
    kinds = groups.groups_of(scope)
    of_groups = [name for name, group in groups.TABLES.items() if group in kinds]
    of_ages = []
    if "age" in kinds:
        of_groups.remove("views-by-age")
        of_ages.append("views-by-age")
    has_publications = any(published_field(model) for model in scope.models)
    if has_publications and not scope.is_all_time:
        of_ages.append("still-read")
    return {"groups": of_groups, "age": of_ages}
