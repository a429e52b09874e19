"""The user of Redis in docs/howto/redis.md has all rights that readtrack needs."""

import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings
from redis import Redis

from demo_project.engines.valkey import Valkey
from readtrack import parts, reports, tracker
from readtrack.doctor.report import examine
from readtrack.flush.run import flush
from readtrack.store import clock, keys
from readtrack.store.channel import channel
from readtrack.subjects import subject_of
from tests.conftest import use_redis
from tests.support import factories
from tests.support.waiting import comes_true

PAGE = Path(__file__).parent.parent.parent / "docs" / "howto" / "redis.md"
RULE = re.compile(r"ACL SETUSER readtrack on >password(.*?)```", re.DOTALL)

pytestmark = pytest.mark.one_server("starts one with a user of its own")


def rights() -> list[str]:
    """Returns the patterns of keys and the commands that the documentation lists."""
    [found] = RULE.findall(PAGE.read_text())
    return str(found).split()


def commands() -> set[str]:
    return {right[1:].partition("|")[0].upper() for right in rights() if right.startswith("+")}


@pytest.fixture
def valkey(settings: Settings) -> Iterator[Valkey]:
    """Yields a server that readtrack uses as this user. Fails if the server refused anything."""
    with Valkey() as server, Redis.from_url(server.url, decode_responses=True) as client:
        client.execute_command("ACL", "SETUSER", "site", "on", ">secret", *rights())
        use_redis(settings, server.url_of("site", "secret"))
        clock.ask()
        yield server
        log: Any = client.acl_log()
        # redis-py tells its name to each server, and goes on if it may not.
        refused = {entry["object"] for entry in log} - {"client|setinfo", "client|setname"}
        assert refused == set()


@pytest.mark.needs_parts("buffer", "numbers", "metrics")
@pytest.mark.django_db
@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {
            "UNIQUE": "set",
            "DOTS": {"form": "sequence"},
            "NUMBERS": {"funnels": True},
            "BUFFER": {"seconds": 1},
        },
        {"UNIQUE": "daily", "DOTS": {"readers": "ordinal"}, "ANONYMOUS": "hash"},
        {
            "UNIQUE": "bitmap",
            "DOTS": {"anonymous": 1_000_000},
            "NUMBERS": {"dimensions": ["device", "referrer"]},
        },
        {
            "IDLE_DAYS": 1,
            "CLUSTER": {"partitions": 16},
            "DOTS": {"readers": "ordinal", "form": "sequence"},
        },
        {"LIVE": {"events": "/events/"}},
    ],
    ids=str,
)
def test_everything_works_with_the_rights_that_the_documentation_lists(
    valkey: Valkey, settings: Settings, overrides: dict[str, Any]
) -> None:
    from readtrack.metrics.budget import budget
    from readtrack.numbers import reports as numbers_reports
    from tests.support import buffered

    settings.READTRACK = {**overrides, "DEBUG_HEADER": True}
    clock.ask()
    category, user = factories.category(), factories.user()
    post = factories.post(category=category)
    readers = [factories.browser(user), factories.browser()]
    tracker.mark_unread([category])
    for browser in readers:
        browser.get(f"/posts/{post.pk}/")
        browser.get(f"/categories/{category.pk}/")
        assert browser.get("/list/").status_code == 200
    tracker.mark_read(user, [category])
    buffered.send()
    tracker.skip([subject_of(post)], "bot")
    assert flush().written == 1
    tracker.refresh_trending()
    reports.views([post])
    reports.visitors([post])
    reports.trending()
    numbers_reports.series(post, hours=3)
    reports.unread(user, [category])
    reports.skips()
    flush(only_changed=True)
    flush(must_archive=True)
    tracker.reset_views(post)
    budget()
    assert {finding.level for finding in examine() if finding.name != "persistence"} <= {
        "ok",
        "note",
        "warning",
    }
    post.delete()
    buffered.send()  # the skips, too


@pytest.mark.needs_parts("live")
@pytest.mark.django_db
def test_a_server_of_events_works_with_these_rights(valkey: Valkey, settings: Settings) -> None:
    from readtrack.live.subscription import Publication, Subscription

    settings.READTRACK = {"LIVE": {"events": "/events/"}}
    heard: list[Publication] = []
    subscription = Subscription(heard.append)
    subscription.start()
    with Redis.from_url(valkey.url) as client:
        assert comes_true(lambda: client.pubsub_numsub(channel())[0][1] == 1)
    category = factories.category()
    tracker.mark_unread([category])
    assert comes_true(lambda: [each.subject for each in heard] == [subject_of(category)])
    subscription.end()


def test_every_command_of_a_script_is_among_the_rights() -> None:
    called = set()
    packages = ["readtrack.store", *(part.name for part in parts.installed())]
    folders = [files(package).joinpath("lua") for package in packages]
    for script in chain(*(folder.iterdir() for folder in folders if folder.is_dir())):
        if script.name == "move_read_state.lua":  # of `readtrack repartition`, which needs more
            continue
        called.update(re.findall(r"call\('([A-Z]+)'", script.read_text()))
    assert called - commands() == set()


def test_every_key_is_among_the_rights() -> None:
    patterns = [right[1:].rstrip("*") for right in rights() if right.startswith("~")]
    assert len(patterns) > 10
    for key in keys.every():
        assert key.pattern.startswith(tuple(patterns)), key.pattern
