"""How much of Redis one client can take: by family of keys, as a visitor and as one address."""

import sys
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack.hits import bots
from readtrack.metrics.memory import overhead
from readtrack.script import robots
from readtrack.store import counters, keys
from readtrack.store.skips import skip_buffer
from tests.site.models import Post
from tests.support import factories
from tests.support.factories import BROWSER

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.one_server("weighs the keys of one server"),
]

HITS = 40
POSTS = 5  # rows of the site, whose number bounds the keys of subjects

# Bytes that a further hit may add to a family, beside the table of the server: keys that live as
# long as a window, a rate or an hour. All other families are bounded by the rows of the site.
BY_HIT = {
    "viewed:{visitor}:{subject}": 2 * 150,  # of the new cookie and of the address
    "rate:{visitor}": 150,
    "funnel:reached:{visitor}:{subject}": 2 * 150,
    "readers:anonymous:{generation}": 120,
    "robots:address:{visitor}": 150,
}
# Keys that neither end nor are those of the rows of the site: each has one value, or a bound.
BOUNDED = {
    "views:unsettled": "a member a counter of the rows, and a model's hours",
    "reads:began": "a time",
    "reads:changed": "a member a category",
    "readers:new": "a member a user",
    "readers:next": "a number",
    "trending:list": "the subjects of an hour",
}


def changing(number: int) -> dict[str, str]:
    """Returns headers of a visitor who looks like another one each time."""
    return {
        "User-Agent": f"{BROWSER} {number}",
        "Referer": f"http://made-up-{number}.example/",
        "Accept-Language": f"x{number}",
    }


def as_one_client(site: "Site") -> Callable[[int], None]:
    browser = factories.browser()
    return lambda number: site.hit(browser, number, {})


def with_new_cookies(site: "Site") -> Callable[[int], None]:
    return lambda number: site.hit(Client(), number, {"User-Agent": BROWSER})


def with_kept_cookies(site: "Site") -> Callable[[int], None]:
    """Each cookie comes back, so that it is a visitor and an anonymous reader."""

    def act(number: int) -> None:
        browser = factories.browser()
        for _ in range(2):
            site.hit(browser, number, {})

    return act


def with_new_agents(site: "Site") -> Callable[[int], None]:
    return lambda number: site.hit(Client(), number, changing(number))


def as_a_robot(site: "Site") -> Callable[[int], None]:
    return lambda number: site.hit(Client(), number, {"User-Agent": f"bot-{number}/1.0"})


def in_the_honeypot(site: "Site") -> Callable[[int], None]:
    def act(number: int) -> None:
        headers = {**changing(number), "Referer": "http://testserver/"}
        Client().get(factories.honeypot(), headers=headers)

    return act


def on_made_up_paths(site: "Site") -> Callable[[int], None]:
    browser = factories.browser()

    def act(number: int) -> None:
        browser.get(f"/posts/{10**9 + number}/?{number}")
        browser.get(f"/categories/{10**9 + number}/")
        browser.get(f"/readtrack/unread/?category={10**9 + number}")
        browser.get(f"/readtrack/out/made-up-{number}")
        browser.get(f"/readtrack/archive/made-up-{number}/")
        browser.post("/readtrack/page.js", f"made-up-{number}\n\n60 1", "text/plain")

    return act


class Site:
    """The pages of the site that a client may ask for."""

    def __init__(self) -> None:
        self.posts = [factories.post(category=factories.category()) for _ in range(POSTS)]

    def hit(self, browser: Client, number: int, headers: dict[str, str]) -> None:
        post: Post = self.posts[number % POSTS]
        browser.get(f"/posts/{post.pk}/", headers=headers)
        browser.get(f"/categories/{post.category_id}/", headers=headers)


def weigh(redis: Redis) -> dict[str, tuple[int, int, int]]:
    """Returns for each family: keys, bytes, and keys without an end."""
    amounts: dict[str, Counter[str]] = {}
    for name in map(str, redis.scan_iter("*")):
        row, _ = keys.parse(name)
        assert row is not None, name
        amount = amounts.setdefault(row.pattern, Counter())
        amount["keys"] += 1
        amount["bytes"] += int(redis.memory_usage(name, samples=0) or 0) + overhead(row)
        amount["endless"] += redis.ttl(name) == -1
    return {row: (each["keys"], each["bytes"], each["endless"]) for row, each in amounts.items()}


@pytest.mark.parametrize(
    "way",
    [
        as_one_client,
        with_new_cookies,
        with_kept_cookies,
        with_new_agents,
        as_a_robot,
        in_the_honeypot,
        on_made_up_paths,
    ],
    ids=lambda way: way.__name__,
)
def test_one_client_takes_a_bounded_number_of_bytes_by_hit(
    way: Callable[[Site], Callable[[int], None]],
    redis: Redis,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings.READTRACK = {
        "DOTS": {"anonymous": 1_000_000},
        "NUMBERS": {"dimensions": ["referrer", "device", "browser"], "funnels": True},
        "RATE": (0, 10),
    }
    act, numbers = way(Site()), count()
    weights = []
    for _ in range(2):
        for _number in range(HITS):
            act(next(numbers))
        skip_buffer.send()
        weights.append(weigh(redis))
    before, after = weights
    added = {
        row: (size - before.get(row, (0, 0, 0))[1]) / HITS for row, (_, size, _) in after.items()
    }
    with capsys.disabled():
        sys.stdout.write(f"\n{way.__name__}: bytes that each of {HITS} further hits added\n")
        for row in sorted(after, key=lambda row: -added[row]):
            many, size, endless = after[row]
            line = f"  {row:42} {many:6} keys {size:9} bytes {endless:6} endless {added[row]:8.1f}"
            sys.stdout.write(f"{line}\n")
    for row, each in added.items():
        # A sketch of 12 KB fills up, a hash of a dimension has 50 values, a day's hash 50 robots.
        assert each <= BY_HIT.get(row, 0) or _is_full(row, after[row]), row
    for row, (many, _, endless) in after.items():
        if row not in BOUNDED:
            assert endless <= 3 * POSTS, row
        assert not endless or row in BOUNDED or "{subject}" in row, (row, many)


def _is_full(row: str, weight: tuple[int, int, int]) -> bool:
    """Returns True for a family that grows only up to a bound by its keys."""
    many, size, _ = weight
    kinds = {key.pattern: key.type for key in keys.every()}
    most = {
        "HyperLogLog": 14_500,
        "hash": counters.VALUES * 150 + 2_000,
        "bitmap": 1_000 + 3 * HITS,
        "string": 200,
        "sorted set": POSTS * 8 * 150,
    }
    by_rows = "{visitor}" not in row
    return by_rows and kinds[row] in most and size <= many * most[kinds[row]] and many <= 40 * POSTS


def test_the_bounds_are_those_of_the_code() -> None:
    assert counters.VALUES == 50
    assert robots.ROBOTS == 5_000
    assert robots.VISITS_OF_ADDRESS == 20
    assert bots.LONGEST == 512


def test_anonymous_readers_take_what_the_setting_says(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"DOTS": {"anonymous": 40}}
    site: Any = Site()
    act = with_kept_cookies(site)
    for number in range(60):
        act(number)
    [name] = redis.keys("readers:anonymous:*")
    assert redis.hlen(str(name)) == 40
    assert redis.memory_usage(str(name), samples=0) < 40 * 120  # type: ignore[operator]
