"""What parts add to the script of a page."""

import pytest

from readtrack.page.placeholders import PAGE, TOLD, Placeholder
from readtrack.page.rendering import rendered
from readtrack.reports.page_state import PageState
from readtrack.script import additions, shown

NAME = "/|0|0|site.post:1|"
OF_NO_PART = 2**20
NOTHING = PageState({}, {})


@pytest.mark.needs_parts("live")
def test_each_addition_has_an_option_of_its_own() -> None:
    options = [addition.option for addition in additions.all_additions()]
    assert len(set(options)) == len(options) > 0
    assert all(option >= 2 and option.bit_count() == 1 for option in options)
    assert [addition.option for addition in additions.among(sum(options))] == options


def test_a_cached_page_with_an_addition_whose_part_is_gone_gets_the_plain_script() -> None:
    placeholder = Placeholder(PAGE, NAME, OF_NO_PART)
    [html] = rendered({b"page": placeholder}, NOTHING).values()
    assert html.startswith(f'{shown.version()}" data-page="')


def test_a_part_that_is_gone_tells_nothing_in_an_answer() -> None:
    placeholders = {
        b"page": Placeholder(PAGE, shown.ANSWER),
        b"told": Placeholder(TOLD, "gone"),
    }
    assert rendered(placeholders, NOTHING)[b"told"] == ""
