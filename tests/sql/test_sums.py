"""New visitors and reads of whole models by the hour, added up by full flushes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.models import History
from readtrack.sql import history, model_sums
from readtrack.sql.row_counts import RowCounts
from tests.support import counts, factories
from tests.support.depth import examples

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

AT = buckets.hour_start(500_000)
gains = st.dictionaries(
    st.integers(0, 300), st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8
)


def sums(name: str) -> dict[int, int]:
    found = history.sums([name], since=1, until=10**6)[name].by_hour()
    return {hour: count for hour, count in found.items() if count}


@settings(max_examples=examples(12))
@given(st.lists(gains, min_size=1, max_size=3), st.lists(st.integers(0, 300), max_size=4))
def test_they_are_the_sums_of_all_objects_however_often_they_are_computed(
    objects: list[dict[int, tuple[int, int]]], flushed: list[int]
) -> None:
    History.objects.all().delete()
    visitors: dict[int, int] = {}
    reads: dict[int, int] = {}
    rows: dict[int, list[tuple[str, RowCounts]]] = {300: [], **{hour: [] for hour in flushed}}
    for number, changes in enumerate(objects):
        total = [0, 0]
        for hour in sorted(changes):
            new, read = changes[hour]
            total = [total[0] + new, total[1] + read]
            rows.setdefault(hour, []).append((f"site.post:{number}", RowCounts(total[0], total[0])))
            rows[hour].append((f"reads:site.post:{number}", RowCounts(total[1], 0)))
            for found, count in ((visitors, new), (reads, read)):
                if count:
                    found[AT_HOUR + hour] = found.get(AT_HOUR + hour, 0) + count
    history.store({"site.post": RowCounts(1, 0)}, hour=AT_HOUR)
    for hour in sorted(rows):
        history.store(dict(rows[hour]), hour=AT_HOUR + hour)
        if hour in (*flushed, 300):
            assert not model_sums._add_sums(
                "site.post", until=AT_HOUR + hour + 1
            )  # of one model: others cost queries
    model_sums._add_sums("site.post", until=AT_HOUR + 301)
    assert sums("visitors:site.post") == visitors
    assert sums("reads:site.post") == reads


AT_HOUR = buckets.hour_index(AT)


def test_a_long_history_is_added_up_as_a_whole_and_an_empty_one_is_none() -> None:
    model_sums.renew_sums(at=AT)
    assert not History.objects.exists()
    for days in (300, 200, 100, 1):
        views = RowCounts(500 - days, 500 - days)
        history.store({"site.post": views, "site.post:1": views}, hour=AT_HOUR - days * 24)
    model_sums.renew_sums(at=AT)
    assert list(sums("visitors:site.post").values()) == [200, 100, 100, 99]


def test_an_import_adds_no_more_visitors_than_views() -> None:
    history.store({"site.post": RowCounts(2, 0), "site.post:1": RowCounts(2, 900)}, hour=AT_HOUR)
    model_sums.renew_sums(at=AT)
    assert list(sums("visitors:site.post").values()) == [2]


def test_a_full_flush_adds_them_up() -> None:
    post = factories.post()
    counts.view(post, post)
    flush()
    assert sum(sums("visitors:site.post").values()) == 2
    counts.view(post)
    flush()
    assert sum(sums("visitors:site.post").values()) == 3
