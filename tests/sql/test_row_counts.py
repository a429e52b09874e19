"""Counts in the rows of SQL are read and raised many at a time, and never lowered."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from readtrack.sql import raising, row_counts
from readtrack.sql.row_counts import RowCounts
from tests.site.models import Page, Post, Profile
from tests.support import factories

pytestmark = pytest.mark.django_db(databases=["default", "lite"])


def counts(post: Post) -> tuple[int, int]:
    post.refresh_from_db()
    return post.view_count, post.visitor_count


@pytest.mark.usefixtures("database")
def test_each_count_is_raised_for_itself_and_none_is_lowered() -> None:
    post = factories.post(view_count=5, visitor_count=5)
    for new, expected in [
        ((9, 1), (9, 5)),
        ((1, 9), (9, 9)),
        ((1, 1), (9, 9)),
        ((10, 10), (10, 10)),
    ]:
        raising.write(Post, {post.pk: RowCounts(*new)})
        assert counts(post) == expected


@pytest.mark.usefixtures("database")
def test_a_write_says_what_it_raised_what_stores_more_and_what_is_missing() -> None:
    low, high, gone = factories.post(view_count=1), factories.post(view_count=50), factories.post()
    pks = [low.pk, high.pk, gone.pk]
    gone.delete()
    written = raising.write(Post, dict.fromkeys(pks, RowCounts(7, 0)))
    assert (list(written.raised), written.ahead, list(written.missing)) == (
        [low.pk],
        [high.pk],
        pks[2:],
    )
    assert row_counts.stored(Post, pks) == {low.pk: RowCounts(7, 0), high.pk: RowCounts(50, 0)}


@pytest.mark.usefixtures("database")
def test_a_row_that_is_not_there_is_not_made() -> None:
    assert raising.write(Page, {"missing": RowCounts(1, 1)}) == ([], [], ["missing"], [])
    assert not Page.objects.exists()


@pytest.mark.usefixtures("database")
def test_a_key_that_the_column_cannot_hold_has_no_counts() -> None:
    post, page = factories.post(view_count=3), Page.objects.create(slug="a" * 100)
    keys = [2**31, 2**63, -(2**63) - 1, 10**20]
    assert row_counts.stored(Post, [*keys, post.pk]) == {post.pk: RowCounts(3, 0)}
    assert row_counts.stored(Page, ["a" * 103, page.pk]) == {page.pk: RowCounts(0, 0)}
    assert row_counts.stored(Post, []) == {}
    new = {key: RowCounts(5, 5) for key in (*keys, post.pk)}
    assert raising.write(Post, new) == ([post.pk], [], keys, [])
    assert raising.write(Page, {"a" * 103: RowCounts(5, 5)}).missing == ["a" * 103]
    for model in (Post, Profile):  # whose keys are of eight and of four bytes
        assert raising.write(model, {2**31: RowCounts(5, 5)}).missing == [2**31]
        assert raising.write(model, {2**63: RowCounts(5, 5)}).missing == [2**63]


@pytest.mark.usefixtures("database")
def test_counts_may_be_as_large_as_a_column_holds() -> None:
    post = factories.post()
    raising.write(Post, {post.pk: RowCounts(2**62, 2**62)})
    assert counts(post) == (2**62, 2**62)


@pytest.mark.django_db(transaction=True)
def test_two_writers_of_the_same_rows_in_opposite_order_do_not_wait_for_each_other_in_a_circle() -> (
    None
):
    pks = [factories.post().pk for _ in range(500)]
    start = Barrier(2)

    def write(order: list[Any]) -> None:
        start.wait()
        try:
            for views in range(1, 31):
                raising.write(Post, dict.fromkeys(order, RowCounts(views, 0)))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, (pks, pks[::-1])))
    assert set(Post.objects.values_list("view_count", flat=True)) == {30}
