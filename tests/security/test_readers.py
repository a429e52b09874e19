"""Anonymous readers: a number of each new cookie does not stay in Redis for ever."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.hits import readers
from readtrack.store import clock, keys, read_state, scripts
from tests.store.test_read_state import ONE, TWO, publish, unread
from tests.support import factories

DAY = 86_400
FIRST = datetime.fromtimestamp(20_000 * DAY, timezone.utc)  # a generation begins
ANN, BOB, EVE = (f"{readers.ANONYMOUS}{name}" for name in ("ann", "bob", "eve"))


@pytest.fixture(autouse=True)
def _day(settings: Settings) -> None:
    settings.READTRACK = {"DOTS": {"anonymous": 1_000_000}, "COOKIE": {"age": DAY}}


def read(reader: str, subject: str = ONE) -> bool:
    return bool(tracker.mark_subjects_read(reader, [subject]))


def set_clock(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    at = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    monkeypatch.setattr(clock, "now", lambda: at + timedelta(days=days))


def hashes(redis: Redis) -> dict[str, int]:
    return {str(key): redis.hlen(str(key)) for key in redis.scan_iter("readers:anonymous:*")}


@pytest.mark.one_server("names the hashes")
def test_a_number_ends_with_the_cookie_that_it_belongs_to(redis: Redis) -> None:
    assert read(ANN)
    assert unread(ANN, ONE) == [0]
    [(name, size)] = hashes(redis).items()
    assert size == 1
    assert DAY <= redis.ttl(name) <= 2 * DAY
    assert redis.hlen("readers") == 0
    read("5")  # a user, whose number stays
    assert redis.hlen("readers") == 1
    assert redis.ttl("readers") == -1


@pytest.mark.one_server("counts the hashes")
def test_a_reader_keeps_the_number_for_as_long_as_the_cookie_may_last(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, 0.9)
    read(ANN)
    set_clock(monkeypatch, 1.8)
    assert unread(ANN, ONE) == [0]
    read(ANN, TWO)
    read(BOB)
    assert sorted(hashes(redis).values()) == [1, 1]
    set_clock(monkeypatch, 2.1)  # the cookie has ended
    assert unread(ANN, ONE) == [1]
    assert unread(BOB, ONE) == [0]


@pytest.mark.one_server("counts the hashes")
def test_no_number_is_given_twice(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(4):
        set_clock(monkeypatch, day)
        for name in (f"{ANN}{day}", f"{BOB}{day}"):
            read(name)
        read(str(day))
        for name in list(hashes(redis)):
            if day == 2:
                redis.delete(name)
    assert redis.get("readers:next") == "12"
    assert redis.bitcount(keys.ordinal_read_bits(ONE)) == 12
    assert unread(EVE, ONE) == [1]


@pytest.mark.one_server("the most is divided among the partitions")
@pytest.mark.parametrize("form", ["bitmap", "sequence"])
def test_no_more_are_numbered_than_the_site_allows_and_the_next_ones_have_no_dots(
    redis: Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**settings.READTRACK.get("DOTS", {}), "anonymous": 2, "form": form},
    }
    set_clock(monkeypatch, 0)
    assert unread(EVE, ONE) == [1]
    assert read(ANN)
    set_clock(monkeypatch, 1)
    assert read(BOB)
    assert not read(EVE)
    assert read(ANN, TWO)
    assert read("5")  # users are not bounded by it
    assert sum(hashes(redis).values()) == 2
    assert unread(EVE, ONE, TWO) == [0, 0]  # it could never put the dots out
    publish(read_state.Publication(ONE))
    assert unread(ANN, ONE) == unread(BOB, ONE) == [1]
    set_clock(monkeypatch, 2)
    assert read(EVE)


@pytest.mark.one_server("deletes a key of one server")
@pytest.mark.parametrize("lost", ["readers:next", "hash"])
def test_no_number_is_given_again_after_an_eviction(redis: Redis, lost: str) -> None:
    read(ANN)
    read("5")
    read(BOB)
    redis.delete(lost if lost != "hash" else next(iter(hashes(redis))))
    read(EVE, TWO)
    assert unread(EVE, ONE) == [1]
    assert unread(EVE, TWO) == [0]


@pytest.mark.one_server("reads one key")
def test_new_accounts_and_anonymous_readers_share_the_numbers(redis: Redis) -> None:
    read(ANN)
    read(BOB)
    assert scripts.run_all(*read_state.number(["7", "8"])) == [3]
    assert sorted(redis.hvals("readers")) == ["2", "3"]


@pytest.mark.django_db
@pytest.mark.parametrize("partitions", [1, 16])
@pytest.mark.needs_parts("cluster")
@pytest.mark.one_server("chooses the partitions")
def test_a_site_with_partitions_has_the_same_dots(
    redis: Redis, settings: Settings, partitions: int
) -> None:
    settings.READTRACK = {**settings.READTRACK, "CLUSTER": {"partitions": partitions}}
    read_state.begin(0)
    subjects = [f"site.category:{number}" for number in range(20)]
    assert set(tracker.mark_subjects_read(ANN, subjects)) == set(subjects)
    assert all(unread(ANN, *subjects) == [0] * 20 for _ in range(2))
    for key in redis.scan_iter("*readers:anonymous*"):
        row, parts = keys.parse(str(key))
        assert row is keys.anonymous_readers
        assert parts["tag"].startswith(":{rt") or partitions == 1
        assert redis.ttl(str(key)) > 0


@pytest.mark.django_db
@pytest.mark.needs_parts("cluster")
@pytest.mark.one_server("begins without partitions, which a cluster refuses")
def test_numbers_move_when_partitions_are_multiplied(redis: Redis, settings: Settings) -> None:
    from readtrack.cluster import repartitioning

    settings.READTRACK = {**settings.READTRACK, "CLUSTER": {"partitions": 1}}
    read(ANN)
    read("5", TWO)
    settings.READTRACK = {**settings.READTRACK, "CLUSTER": {"partitions": 16}}
    repartitioning.move(1)
    assert unread(ANN, ONE, TWO) == [0, 1]
    assert unread("5", ONE, TWO) == [1, 0]
    assert all(redis.ttl(key) > 0 for key in redis.scan_iter("readers:anonymous*"))


@pytest.mark.django_db
def test_a_visitor_who_signs_in_begins_anew_and_finds_the_old_dots_after_signing_out() -> None:
    category, browser, user = factories.category(), factories.browser(), factories.user()
    url = f"/categories/{category.pk}/"
    for _ in range(2):  # the first one brings the cookie
        browser.get(url)
    assert "readtrack-dot" not in browser.get("/list/").text
    browser.force_login(user)
    assert "readtrack-dot" in browser.get("/list/").text
    cookie: Any = browser.cookies["anon_id"].value
    browser.logout()
    browser.cookies["anon_id"] = cookie
    assert "readtrack-dot" not in browser.get("/list/").text
