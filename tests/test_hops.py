"""A page and a flush go through few modules of the core, so that a maintainer can follow them. What
a part does in between is in its own folder.

Functions are not counted: many with a name each are easier to follow than few.
"""

from collections.abc import Iterable

import pytest

from readtrack import parts
from tests.benchmarks.bench_hops import files, flush_functions, listed, page_functions
from tests.support import factories

pytestmark = pytest.mark.one_server("a cluster takes more functions")

MOST_OF_PAGE = 31  # one of them is store/packed.py, for its speed alone
MOST_OF_FLUSH = 37  # one of them is progress.py, whose function does nothing
PARTS = tuple(part.name.removeprefix("readtrack.") + "/" for part in parts.installed())


def of_core(names: Iterable[str]) -> list[str]:
    """Returns those of the modules that are not in the folder of a part."""
    return [name for name in names if not name.startswith(PARTS)]


@pytest.mark.django_db
@pytest.mark.parametrize("is_signed_in", [True, False])
def test_a_page_with_a_view_a_count_and_a_dot_goes_through_few_modules(
    *, is_signed_in: bool
) -> None:
    post = factories.post(category=factories.category())
    entered = page_functions(post, factories.user() if is_signed_in else None)
    assert len(of_core(files(entered))) <= MOST_OF_PAGE, "\n".join(listed(entered))


@pytest.mark.django_db(transaction=True)
def test_a_changed_flush_of_one_post_goes_through_few_modules() -> None:
    # A minute that begins meanwhile adds one.
    entered = min((flush_functions(factories.post()) for _ in range(2)), key=len)
    assert len(of_core(files(entered))) <= MOST_OF_FLUSH, "\n".join(listed(entered))
