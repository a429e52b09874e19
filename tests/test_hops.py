"""A page and a flush enter few functions of readtrack, so that a maintainer can follow them."""

import pytest

from tests.benchmarks.bench_hops import files, flush_functions, listed, page_functions
from tests.support import factories

pytestmark = pytest.mark.one_server("a cluster takes more functions")


@pytest.mark.django_db
@pytest.mark.parametrize("is_signed_in", [True, False])
def test_a_page_with_a_view_a_count_and_a_dot_enters_few_functions(*, is_signed_in: bool) -> None:
    post = factories.post(category=factories.category())
    found = page_functions(post, factories.user() if is_signed_in else None)
    assert (len(found) <= 60, len(files(found)) <= 16) == (True, True), "\n".join(listed(found))


@pytest.mark.django_db(transaction=True)
def test_a_changed_flush_of_one_post_enters_few_functions() -> None:
    # A minute that begins meanwhile adds one.
    found = min((flush_functions(factories.post()) for _ in range(2)), key=len)
    assert (len(found) <= 75, len(files(found)) <= 14) == (True, True), "\n".join(listed(found))
