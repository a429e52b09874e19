"""Checks of the setting FRONT_END."""

from django.core import checks

from readtrack.conf import function_problem
from readtrack.front_end.options import front_end_options


def check_queryset() -> list[checks.CheckMessage]:
    """Checks that `queryset` names a function that exists."""
    path = front_end_options().queryset
    problem = function_problem(path) if path else ""
    if not problem:
        return []
    return [
        checks.Error(
            f"READTRACK['FRONT_END']['queryset'] names '{path}', which is no function: {problem}.",
            hint=(
                "Give the path of a function that takes (request, queryset), and returns the rows"
                " which the user may see."
            ),
            id="readtrack.E068",
        )
    ]
