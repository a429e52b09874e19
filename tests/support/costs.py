"""How many queries and round trips a page of the dashboard may cost."""

from typing import Any

OF_A_LIST = (5, 2)
OF_THE_OVERVIEW = (12, 3)
OF_THE_STORIES = (7, 3)  # with the visitors of 50 of them


def limits_of(page: Any) -> tuple[int, int]:
    """Returns the most queries, without those of the admin, and the most round trips of a page."""
    if page.context["is_overview"]:
        return OF_THE_OVERVIEW
    return OF_THE_STORIES if page.context["tab"] == "stories" else OF_A_LIST
