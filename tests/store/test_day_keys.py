"""The key of a day: random, the same in all processes, and gone after two days."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from pytest_django import Settings
from redis import Redis

from readtrack import buckets
from readtrack.hits.visitors import Visitor
from readtrack.middleware import ReadTrackMiddleware
from readtrack.store import day_keys, keys
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def hashed(settings: Settings) -> Iterator[None]:
    settings.READTRACK = {"ANONYMOUS": "hash", "DEBUG_HEADER": True}
    be_another_process()
    yield
    be_another_process()


def be_another_process() -> None:
    day_keys._known_keys.clear()
    day_keys._confirmed.clear()


def id_of(at: datetime) -> str:
    return day_keys.resolve(Visitor("a hash", kind="hash"), at=at).id


def visit(rf: Any, address: str = "192.0.2.1") -> str:
    """Returns what became of a view."""
    post = factories.post()

    def page(request: Any) -> HttpResponse:
        request.readtrack.view(post)
        return HttpResponse()

    request = rf.get("/", REMOTE_ADDR=address, headers={"User-Agent": factories.BROWSER})
    return str(ReadTrackMiddleware(page)(request)["X-Readtrack"])  # type: ignore[index]


def test_all_processes_know_a_visitor_by_the_same_id() -> None:
    now, seen = buckets.now(), id_of(buckets.now())
    assert id_of(now) == seen
    be_another_process()
    assert id_of(now) == seen
    assert day_keys.resolve(Visitor("another hash", kind="hash"), at=now).id != seen


def test_a_past_day_cannot_be_computed_again_by_whoever_has_the_secrets(
    redis: Redis, settings: Settings
) -> None:
    now, seen = buckets.now(), id_of(buckets.now())
    [name] = redis.keys("visitors:key:*")
    assert 0 < redis.ttl(name) <= 2 * 86_400
    id_of(now + DAY)
    be_another_process()
    redis.delete(name)  # as Redis does when its time is over
    assert id_of(now) != seen


def test_a_process_forgets_past_days() -> None:
    now = buckets.now()
    for back in (5, 4, 3, 2, 1, 0):
        id_of(now - DAY * back)
    names = [keys.day_key(keys.tags()[0], buckets.day_bucket(now - DAY * back)) for back in (1, 0)]
    assert sorted(day_keys._known_keys) == names


def test_tenants_have_keys_of_their_own_that_the_process_remembers(
    settings: Settings, redis: Redis
) -> None:
    def ids() -> list[str]:
        found = []
        for tenant in ("b:", "a:", "c:"):
            settings.READTRACK = {"ANONYMOUS": "hash", "PREFIX": tenant}
            found.append(id_of(now))
        return found

    now = buckets.now()
    before = ids()
    redis.flushdb()
    assert ids() == before
    assert len({*before}) == 3


def test_a_page_makes_one_round_trip(rf: Any, wire: Wire) -> None:
    assert visit(rf) == "counted"  # asks for the key
    for is_confirmed in (True, False):
        if not is_confirmed:
            day_keys._confirmed.clear()
        with wire.counted() as trips:
            assert visit(rf) == "counted"
        assert trips == [1]


def test_a_key_that_redis_lost_comes_back_from_a_process_that_knows_it(
    rf: Any, redis: Redis
) -> None:
    now, seen = buckets.now(), id_of(buckets.now())
    redis.flushdb()
    day_keys._confirmed.clear()  # a minute later
    assert visit(rf) == "counted"
    be_another_process()
    assert id_of(now) == seen


def test_two_processes_that_saw_the_loss_agree_on_one_key_again(rf: Any, redis: Redis) -> None:
    now, before = buckets.now(), id_of(buckets.now())
    first = dict(day_keys._known_keys)
    redis.flushdb()
    be_another_process()
    second = id_of(now)
    assert second != before
    be_another_process()
    day_keys._known_keys.update(first)
    visit(rf)
    assert id_of(now) == second


def test_without_redis_pages_are_served_and_nothing_is_counted(rf: Any, settings: Settings) -> None:
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert visit(rf) == "skipped; reason=error"


def test_without_yesterdays_key_today_begins_anew() -> None:
    midnight = buckets.now().replace(hour=0, minute=0, second=0, microsecond=0)
    hashed = Visitor("a hash", kind="hash")
    assert day_keys.resolve(hashed, at=midnight).fallback_id == ""
    be_another_process()
    seen = id_of(midnight - DAY)
    assert day_keys.resolve(hashed, at=midnight).fallback_id == seen
