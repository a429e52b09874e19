"""Read state by each strategy and each numbering of readers: one contract, and its memory."""

import random
import uuid
from collections import ChainMap
from itertools import chain
from typing import Any

import pytest
from redis import Redis

from readtrack import tracker
from readtrack.hits import readers
from readtrack.hits.readers import Reader
from readtrack.reports.page_state import page_state
from readtrack.store import read_state, scripts
from readtrack.store.read_state import Publication
from tests.support.bounds import set_most_bits

ONE, TWO = "site.category:1", "site.category:2"
BY_ID: list[dict[str, Any]] = [{}, {"DOTS": {"form": "sequence"}}]
BY_ORDINAL: list[dict[str, Any]] = [
    {"DOTS": {"readers": "ordinal"}},
    {"DOTS": {"form": "sequence", "readers": "ordinal"}},
]
COUNTING = [BY_ID[1], BY_ORDINAL[1]]


@pytest.fixture(params=[*BY_ID, *BY_ORDINAL], ids=str)
def ann(request: pytest.FixtureRequest, settings: Any) -> Reader:
    """Returns a reader, by each strategy and each numbering."""
    settings.READTRACK = request.param
    return readers.reader_by_id(4)


@pytest.fixture
def bob(ann: Reader) -> Reader:
    return readers.reader_by_id(5)


def unread(reader: Reader, *subjects: str) -> list[int]:
    counts = ChainMap(*scripts.run_all(*read_state.unread_calls(reader, subjects)))
    return [counts[subject] for subject in subjects]


def read(reader: Reader, *subjects: str) -> None:
    assert {*tracker.mark_subjects_read(reader, subjects)} == {*subjects}


def publish(*news: Publication) -> None:
    assert all(scripts.run_all(*read_state.publish(news)))


def test_a_category_that_was_never_opened_is_unread(ann: Reader) -> None:
    assert unread(ann, ONE, TWO) == [1, 1]


def test_opening_reads_for_one_reader_and_one_category(ann: Reader, bob: Reader) -> None:
    read(ann, ONE)
    assert unread(ann, ONE, TWO) == [0, 1]
    assert unread(bob, ONE, TWO) == [1, 1]


def test_news_is_unread_for_everybody_and_opening_reads_it(ann: Reader, bob: Reader) -> None:
    for reader in (ann, bob):
        read(reader, ONE, TWO)
    publish(Publication(ONE))
    assert unread(ann, ONE, TWO) == unread(bob, ONE, TWO) == [1, 0]
    read(ann, ONE)
    assert unread(ann, ONE) == [0]
    assert unread(bob, ONE) == [1]


def test_an_author_who_had_read_all_gets_no_dot(ann: Reader, bob: Reader) -> None:
    for reader in (ann, bob):
        read(reader, ONE)
    publish(Publication(ONE, author=ann))
    assert unread(ann, ONE) == [0]
    assert unread(bob, ONE) == [1]


def test_an_author_with_something_unread_keeps_the_dot(ann: Reader, bob: Reader) -> None:
    read(ann, ONE)
    publish(Publication(ONE, author=bob))
    publish(Publication(ONE, author=ann))
    assert unread(ann, ONE) == [1]


def test_an_author_who_has_never_been_there_gets_no_read_state(ann: Reader, redis: Redis) -> None:
    publish(Publication(ONE, author=ann))
    assert unread(ann, ONE) == [1]
    assert not redis.exists("readers")


@pytest.mark.one_server("an author who has no ordinal in the category's partition yet sees the dot")
def test_an_authors_own_post_is_read(ann: Reader, bob: Reader) -> None:
    read(ann, TWO)
    publish(Publication(ONE, author=ann, is_own=True))
    assert unread(ann, ONE) == [0]
    assert unread(bob, ONE) == [1]


def test_readers_are_counted_until_there_is_news(ann: Reader, bob: Reader) -> None:
    assert read_state.count_readers([ONE]) == {ONE: 0}
    for reader in (ann, bob):
        read(reader, ONE)
    assert read_state.count_readers([ONE, TWO]) == {ONE: 2, TWO: 0}
    publish(Publication(ONE))
    assert read_state.count_readers([ONE]) == {ONE: 0}
    read(bob, ONE)
    assert read_state.count_readers([ONE]) == {ONE: 1}


def test_a_page_asks_for_any_number_of_counts_in_one_round_trip(ann: Reader) -> None:
    subjects = [f"site.category:{number}" for number in range(scripts.SLICE)]
    assert set(unread(ann, *subjects)) == {1}
    publish(*map(Publication, subjects))
    read(ann, *subjects)
    assert set(unread(ann, *subjects)) == {0}


@pytest.mark.parametrize("options", COUNTING, ids=str)
def test_a_sequence_counts_the_news(options: dict[str, Any], settings: Any) -> None:
    settings.READTRACK = options
    ann, bob = readers.reader_by_id(4), readers.reader_by_id(5)
    publish(Publication(ONE, items=2))
    assert unread(ann, ONE) == [2]
    read(ann, ONE)
    publish(Publication(ONE), Publication(TWO))
    publish(Publication(ONE, items=3, author=ann))
    assert unread(ann, ONE, TWO) == [1, 1]
    assert unread(bob, ONE) == [6]


def test_ordinals_are_given_once_and_only_to_readers(redis: Redis, settings: Any) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    names = ["2b0d7b3d-3d5c-4f5e-9d53-1f1d8c8f9f10", str(2**63), "a%20slug"]
    for name in names:
        unread(name, ONE)
    assert not redis.exists("readers")
    for name in [*names, *names]:
        read(name, ONE)
    fields = [str(read_state.field(name)) for name in names]
    assert redis.hgetall("readers") == {field: str(number) for number, field in enumerate(fields)}
    assert redis.bitcount("category:site.category:1:read:ordinal") == 3


@pytest.mark.parametrize("options", BY_ORDINAL, ids=str)
def test_redis_holds_no_reader_by_primary_key(
    redis: Redis, settings: Any, options: dict[str, Any]
) -> None:
    settings.READTRACK = options
    pk = uuid.uuid4()
    reader = readers.reader_by_id(pk)
    read(reader, ONE)
    publish(Publication(ONE, author=reader))
    assert unread(reader, ONE) == [0]
    assert redis.hlen("readers") == 1
    assert str(pk) not in f"{redis.hgetall('readers')}{redis.keys('*')}"


@pytest.mark.parametrize(("form", "bits"), [("bitmap", 1), ("sequence", 63)])
def test_no_more_ordinals_are_handed_out_than_allowed(
    redis: Redis, settings: Any, form: str, bits: int
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal", "form": form}}
    set_most_bits(bits)
    assert [tracker.mark_subjects_read(name, [ONE]) for name in ("a", "b", "c", "a")] == [
        [ONE],
        [ONE],
        [],
        [ONE],
    ]
    assert redis.hlen("readers") == 2
    assert unread("c", ONE) == [1]


@pytest.mark.parametrize("evicted", ["readers", "readers:next"])
def test_no_ordinal_is_handed_out_again_after_an_eviction(
    redis: Redis, settings: Any, evicted: str
) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    for name in ("a", "b"):
        read(name, ONE)
    redis.delete(evicted)
    for name in ("c", "d"):
        read(name, TWO)
    assert unread("c", ONE) == unread("d", ONE) == [1]
    assert unread("c", TWO) == unread("d", TWO) == [0]


def test_every_publication_ends_the_read_state_of_all_strategies(
    redis: Redis, settings: Any
) -> None:
    for options in [*BY_ID, *BY_ORDINAL]:
        settings.READTRACK = options
        read(readers.reader_by_id(4), ONE)
    assert len(redis.keys("category:*")) == 4
    settings.READTRACK = {}
    publish(Publication(ONE))
    assert redis.keys("category:*") == ["category:site.category:1:published"]


@pytest.mark.parametrize(
    ("options", "highest", "most"),
    [({}, 999_999, 140_000), ({"DOTS": {"form": "sequence"}}, 999_999, 5_000_000)],
    ids=str,
)
def test_a_million_dense_readers_stay_in_their_budget(
    options: dict[str, Any], highest: int, most: int, settings: Any, redis: Redis
) -> None:
    settings.READTRACK = options
    read(highest, ONE)
    read(0, ONE)
    key = read_state.form_of(ONE).key()(ONE)
    assert int(str(redis.memory_usage(key, samples=0))) <= most


def test_a_million_readers_in_any_order_take_twice_that_at_most(redis: Redis) -> None:
    """SETBIT doubles a string that grows."""
    order = random.Random(7)
    sizes = []
    for _ in range(20):
        for reader in order.sample(range(1_000_000), 30):
            read(reader, ONE)
        key = read_state.form_of(ONE).key()(ONE)
        sizes.append(int(str(redis.memory_usage(key, samples=0))))
        redis.unlink(key)
    assert min(sizes) >= 125_000
    assert max(sizes) <= 263_000


@pytest.mark.parametrize("options", BY_ORDINAL, ids=str)
def test_ten_thousand_scattered_readers_stay_in_their_budget(
    options: dict[str, Any], settings: Any, redis: Redis
) -> None:
    settings.READTRACK = options
    names = [str(2**63 - number * 10**9) for number in range(5_000)]
    names += [f"2b0d7b3d-3d5c-4f5e-9d53-{number:012d}" for number in range(5_000)]
    for some in scripts.sliced(names):
        scripts.run_all(*chain.from_iterable(read_state.marks(name, [ONE]) for name in some))
    used = [redis.memory_usage(key, samples=0) for key in redis.keys("*")]
    assert sum(int(str(size)) for size in used) <= 3_000_000
    assert read_state.count_readers([ONE]) == {ONE: 10_000}


@pytest.mark.parametrize(("state", "highest"), [("bitmap", 100_000_000), ("sequence", 3_125_000)])
@pytest.mark.usefixtures("new_redis")
def test_a_far_id_is_refused_and_allocates_nothing(
    state: str, highest: int, settings: Any, redis: Redis
) -> None:
    settings.READTRACK = {"DOTS": {"form": state}}
    assert readers.reader_by_id(highest) == highest
    with pytest.raises(readers.ReaderError, match=r"readers.*ordinal"):
        readers.reader_by_id(highest + 1)
    assert redis.keys("*") == []


@pytest.mark.django_db
def test_without_redis_there_are_no_dots(settings: Any) -> None:
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert page_state(dots=[ONE], reader=4).unread == {}
