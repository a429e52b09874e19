"""Scripts run by their digest in one round trip, and are loaded again if a server has lost them."""

from importlib.resources import files
from threading import Barrier, Thread
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ResponseError

from readtrack import tracker
from readtrack.hits import readers
from readtrack.store import counters, keys, read_state, scripts
from readtrack.store.circuit import SilentError
from readtrack.store.connection import AnswerError, connect
from readtrack.store.counters import Stored
from readtrack.store.counting import count_views
from readtrack.store.pools import ARGUMENTS
from tests.support import factories
from tests.support.caches import use_pool
from tests.support.forks import Forks
from tests.support.rows import each_row
from tests.support.waiting import comes_true
from tests.support.wire import Wire

LUA = sorted(path.name for path in files("readtrack.store").joinpath("lua").iterdir())


INCLUDED = (
    "changed.lua",
    "common.lua",
    "restoring.lua",
    "since.lua",
    "unsettled.lua",
    "view.lua",
)


@each_row("name", LUA)
def test_each_script_says_what_it_takes_and_returns(name: str) -> None:
    source = files("readtrack.store").joinpath("lua", name).read_text()
    head = source.split("\nlocal ")[0]
    assert source.startswith("-- ")
    if name in INCLUDED:
        assert "Takes" in head
        assert "Gives: " in head
        return
    assert "KEYS" in head
    assert "Returns: " in head
    assert "ARGV" in head or "ARGV" not in source


def test_a_call_has_its_result_once_it_was_run(redis: Redis) -> None:
    redis.mset({"a": 1, "b": 2})
    calls = [scripts.Call("GET", [name], (), int) for name in ("a", "b")]
    assert scripts.run_all(*calls) == [1, 2]
    assert [call.result for call in calls] == [1, 2]


def test_a_result_that_is_read_before_the_run_says_so() -> None:
    with pytest.raises(scripts.NotRunError, match="'totals' has no result before it is run"):
        counters.totals(["a.b:1"]).result  # noqa: B018


def test_a_call_that_redis_refuses_leaves_the_others_their_results(redis: Redis) -> None:
    redis.set("text", "a")
    good, bad = scripts.Call[bytes]("GET", ["text"]), scripts.Call[int]("INCR", ["text"])
    with pytest.raises(ResponseError, match="not an integer"):
        scripts.run_all(bad, good)
    assert good.result == b"a"
    with pytest.raises(ResponseError, match="not an integer"):
        bad.result  # noqa: B018


def test_no_call_has_a_result_where_one_answer_was_that_to_another_question(redis: Redis) -> None:
    redis.mset({"number": 1, "text": "a"})
    first = scripts.Call("GET", ["number"], (), int)
    second = scripts.Call("GET", ["text"], (), int)
    with pytest.raises(AnswerError):
        scripts.run_all(first, second)
    assert not first.has_result
    assert not second.has_result
    with pytest.raises(AnswerError):
        first.result  # noqa: B018


def test_a_silent_server_of_a_cluster_is_told_from_a_call_that_was_not_run() -> None:
    silent = scripts.Call[int]("GET", ["a"])
    silent.take(SilentError("127.0.0.1:1 failed"))
    with pytest.raises(SilentError, match="failed"):
        silent.result  # noqa: B018
    without_it = scripts.Call[int]("GET", ["a"], absent=0)
    without_it.take(SilentError("127.0.0.1:1 failed"))
    assert without_it.result == 0


def test_several_calls_are_one_round_trip(wire: Wire) -> None:
    calls: list[scripts.Call[Any]] = [
        counters.totals(["a.b:1", "a.b:2"]),
        *read_state.unread_calls(1, ["a.c:1"]),
        count_views(factories.hit("a.b:1")),
    ]
    scripts.run_all(*calls)
    with wire.counted() as trips:
        totals, read, outcome = scripts.run_all(*calls)
    assert trips == [1]
    assert totals["a.b:1"].views == 1
    assert read == {"a.c:1": 1}
    assert outcome.skipped == {"a.b:1": "repeat"}


def test_a_server_that_forgot_the_scripts_learns_them_again(redis: Redis) -> None:
    redis.script_flush()
    assert tracker.record(factories.hit("a.b:1")).counted
    redis.script_flush()
    assert scripts.run_all(counters.totals(["a.b:1"]))[0]["a.b:1"].views == 1


def test_calls_see_what_a_forgotten_script_before_them_writes(redis: Redis) -> None:
    post, exists = "a.b:1", scripts.Call[int]("EXISTS", [keys.total("a.b:1")])
    redis.script_flush()
    connect().script_load(scripts._source("totals"))
    found = scripts.run_all(count_views(factories.hit(post)), counters.totals([post]), exists)
    assert (found[0].counted, found[1][post].views, found[2]) == ((post,), 1, 1)


def test_a_view_that_a_known_script_counted_is_new_though_a_script_before_it_was_forgotten(
    redis: Redis,
) -> None:
    scripts.run(count_views(factories.hit("a.b:2")))
    redis.script_flush()
    connect().script_load(scripts._source("record"))
    _, outcome = scripts.run_all(counters.totals(["a.b:1"]), count_views(factories.hit("a.b:1")))
    assert outcome.counted == ("a.b:1",)


def test_a_reader_that_a_known_script_forgot_has_a_number_though_a_script_before_it_was_forgotten(
    redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}}
    anonymous = f"{readers.ANONYMOUS}visitor"
    read_state.begin(0)
    tracker.mark_subjects_read(anonymous, ["site.category:1"])
    redis.script_flush()
    connect().script_load(scripts._source("forget_reader"))
    _, *numbers = scripts.run_all(counters.totals(["a.b:1"]), *read_state.forget(anonymous))
    assert 0 in numbers


def test_a_script_that_exists_nowhere_is_an_error(redis: Redis) -> None:
    with pytest.raises((NoScriptError, FileNotFoundError)):
        scripts.run(scripts.Call("nothing", [], [], lambda answer: answer))


@pytest.mark.one_server("has connections to one server")
def test_scripts_leave_most_connections_of_a_pool_to_all_else(settings: Settings) -> None:
    use_pool(settings, max_connections=20)
    pool = connect().connection_pool
    begin = Barrier(8)

    def ask() -> None:
        begin.wait()
        scripts.run_all(*[counters.totals(["a.b:1"])] * 500)

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [pool.get_connection(*ARGUMENTS) for _ in range(18)]
    with pytest.raises(RedisConnectionError, match="Too many"):
        [pool.get_connection(*ARGUMENTS) for _ in range(18)]
    assert taken


def test_a_forked_process_uses_no_connection_of_its_parent(redis: Redis, forks: Forks) -> None:
    redis.mset({"views:total:a.b:1": 1, "views:total:a.b:2": 2})
    code = """
import os
from readtrack.store import counters, scripts
from readtrack.store.counting import count_views
def ask(number):
    name = f"a.b:{number}"
    for _ in range(300):
        assert scripts.run(counters.totals([name]))[name].views == number
ask(1)
child = os.fork()
ask(2 if child else 1)
if child: assert os.waitpid(child, 0)[1] == 0
"""
    assert forks.run(code).code == 0


def test_nothing_is_no_round_trip(wire: Wire) -> None:
    with wire.counted() as trips:
        assert scripts.run_all() == []
    assert trips == [0]


def test_long_lists_are_cut_into_portions_that_lua_can_take() -> None:
    items = factories.subjects("a.b", 2_500)
    slices = scripts.sliced(items)
    assert [item for some in slices for item in some] == items
    assert all(len(some) <= scripts.SLICE for some in slices)
    assert scripts.run_all(*map(counters.totals, slices)) == [{}, {}, {}]


def test_the_largest_portion_is_one_the_server_takes(redis: Redis) -> None:
    subjects = factories.subjects("a.b", scripts.SLICE)
    redis.mset({f"views:total:{subject}": 1 for subject in subjects})
    assert len(scripts.run(counters.totals(subjects))) == scripts.SLICE
    assert scripts.run_all(*counters.lift(dict.fromkeys(subjects, Stored({"": 2})))) == [
        scripts.SLICE
    ]
    news = [read_state.Publication(subject) for subject in subjects]
    [time] = scripts.run_all(*read_state.publish(news))
    assert time


def test_a_change_of_settings_closes_the_connections_that_scripts_keep(
    settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"TIMEOUT": 5.0}  # closes what other tests left
    before = {client["id"] for client in redis.client_list()}
    scripts.run(counters.epoch(keys.tags()[0]))
    assert {client["id"] for client in redis.client_list()} - before
    settings.READTRACK = {"TIMEOUT": 6.0}
    assert comes_true(lambda: not {client["id"] for client in redis.client_list()} - before)
