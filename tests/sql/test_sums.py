"""Reads of whole models by the hour, added up by full flushes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers.models import History
from readtrack.numbers.sql import history, model_sums
from readtrack.sql.row_counts import RowCounts
from readtrack.subjects import subject_of
from tests.support import counts, factories
from tests.support.depth import examples

pytestmark = [
    pytest.mark.django_db(databases=["default", "lite"]),
    pytest.mark.usefixtures("database"),
]

AT = buckets.hour_start(500_000)
gains = st.dictionaries(st.integers(0, 300), st.integers(0, 5), max_size=8)


def sums(name: str) -> dict[int, int]:
    found = history.sums([name], since=1, until=10**6)[name].by_hour()
    return {hour: count for hour, count in found.items() if count}


@settings(max_examples=examples(12))
@given(
    st.lists(gains, min_size=1, max_size=3),
    st.lists(st.integers(0, 300), max_size=4),
    st.sampled_from(["seen", "engaged", "reads"]),
)
def test_they_are_the_sums_of_all_objects_however_often_they_are_computed(
    objects: list[dict[int, int]], flushed: list[int], stage: str
) -> None:
    History.objects.all().delete()
    reads: dict[int, int] = {}
    rows: dict[int, list[tuple[str, RowCounts]]] = {300: [], **{hour: [] for hour in flushed}}
    for number, changes in enumerate(objects):
        total = 0
        for hour in sorted(changes):
            total += changes[hour]
            row = (f"{stage}:site.post:{number}", RowCounts(total, 0))
            rows.setdefault(hour, []).append(row)
            if changes[hour]:
                reads[AT_HOUR + hour] = reads.get(AT_HOUR + hour, 0) + changes[hour]
    history.store({"site.post": RowCounts(1, 0)}, hour=AT_HOUR)
    for hour in sorted(rows):
        history.store(dict(rows[hour]), hour=AT_HOUR + hour)
        if hour in (*flushed, 300):
            assert not model_sums._add_sums(
                "site.post", until=AT_HOUR + hour + 1
            )  # of one model: others cost queries
    model_sums._add_sums("site.post", until=AT_HOUR + 301)
    assert sums(f"{stage}:site.post") == reads


def test_a_model_whose_script_reports_nothing_has_no_rows_of_seen_views() -> None:
    history.store({"site.post": RowCounts(1, 0), "site.post:1": RowCounts(1, 0)}, hour=AT_HOUR)
    model_sums.renew_sums(at=AT)
    assert not History.objects.filter(subject__startswith="seen:").exists()
    assert not History.objects.filter(subject__startswith="engaged:").exists()


AT_HOUR = buckets.hour_index(AT)


def test_a_long_history_is_added_up_as_a_whole_and_an_empty_one_is_none() -> None:
    model_sums.renew_sums(at=AT)
    assert not History.objects.exists()
    for days in (300, 200, 100, 1):
        count = RowCounts(500 - days, 0)
        names = ("site.post", "site.post:1", "reads:site.post:1")
        history.store(dict.fromkeys(names, count), hour=AT_HOUR - days * 24)
    model_sums.renew_sums(at=AT)
    assert list(sums("reads:site.post").values()) == [200, 100, 100, 99]


def test_a_full_flush_adds_them_up() -> None:
    post = factories.post()
    for number in (2, 3):
        counts.view(post)
        present_hour = buckets.hour_index(buckets.now())
        history.store({f"reads:{subject_of(post)}": RowCounts(number, 0)}, hour=present_hour)
        flush()
        assert sum(sums("reads:site.post").values()) == number
