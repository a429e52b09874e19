"""Users for whom everything starts as read: all of a site that moves in, and new accounts."""

from typing import Any

import pytest
from django.core import serializers
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import override_settings
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits import readers
from readtrack.store import keys, read_state, scripts
from readtrack.unread import starting
from tests.site.models import Category, Member, Post, Shelf, Topic
from tests.support import factories
from tests.support.bounds import set_most_bits

pytestmark = pytest.mark.django_db(transaction=True)

STRATEGIES: list[dict[str, Any]] = [
    {},
    {"DOTS": {"form": "sequence"}},
    {"DOTS": {"readers": "ordinal"}},
    {"DOTS": {"form": "sequence", "readers": "ordinal"}},
]


@pytest.fixture(params=STRATEGIES, ids=str)
def _strategy(request: pytest.FixtureRequest, settings: Settings) -> None:
    settings.READTRACK = request.param


@pytest.mark.usefixtures("_strategy")
def test_every_dot_of_every_user_is_put_out_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    users, categories = (
        [factories.user() for _ in range(10)],
        [factories.category() for _ in range(3)],
    )
    tracker.mark_unread(categories[:1])
    tracker.mark_read(users[5], categories[1:2])
    call_command("readtrack", "start-as-read", model=["site.Category"])
    assert capsys.readouterr().out.startswith("Marked 3 objects read, ")
    assert all(reports.unread(user, categories) == set() for user in users)
    assert all(reports.unread(user, [Topic(pk=1)]) for user in users)
    later = factories.user()
    assert reports.unread(later, categories) == set(categories)
    Post.objects.create(title="x", category=categories[0])
    assert all(reports.unread_counts(user, categories)[categories[0]] == 1 for user in users)
    assert all(reports.unread(user, categories) == {categories[0]} for user in users)


@pytest.mark.usefixtures("_strategy")
def test_it_can_be_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "SLICE", 2)
    users, categories = (
        [factories.user() for _ in range(5)],
        [factories.category() for _ in range(5)],
    )
    for _ in range(2):
        call_command("readtrack", "start-as-read", verbosity=0)
        assert all(reports.unread(user, categories) == set() for user in users)
    assert set(reports.reader_counts(categories).values()) >= {5} or not readers.has_ordinals()


@pytest.mark.usefixtures("_strategy")
def test_what_is_published_meanwhile_keeps_its_dots() -> None:
    user, categories = factories.user(), [factories.category() for _ in range(2)]
    as_of = reports.as_of()
    tracker.mark_unread(categories[:1])
    subjects = [f"site.category:{category.pk}" for category in categories]
    number = starting.give_ordinals()[keys.tags()[0]] if readers.has_ordinals() else user.pk
    calls = [
        read_state.form_of(some[0]).fill(some, highest=number, as_of=as_of)
        for some in scripts.parted(subjects)
    ]
    assert sum(scripts.run_all(*calls)) == 1
    assert reports.unread(user, categories) == {categories[0]}


def test_a_dry_run_says_how_much_memory_it_would_take(capsys: pytest.CaptureFixture[str]) -> None:
    user, categories = factories.user(pk=799_999), [factories.category() for _ in range(2)]
    call_command("readtrack", "start-as-read", model=["site.category"], dry_run=True)
    assert (
        capsys.readouterr().out == "It would mark 2 objects read, 97.7 KB each, 195.3 KB in all.\n"
    )
    assert reports.unread(user, categories) == set(categories)


def test_no_more_is_allocated_than_the_highest_reader_allows() -> None:
    set_most_bits(100)
    factories.user(pk=1_000)
    user, category = factories.user(pk=100), factories.category()
    call_command("readtrack", "start-as-read", verbosity=0)
    assert reports.unread(user, [category]) == set()
    assert reports.reader_counts([category]) == {category: 101}


def test_no_more_ordinals_are_given_than_allowed(settings: Settings) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    set_most_bits(1)
    for _ in range(4):
        factories.user()
    assert starting.give_ordinals() == dict.fromkeys(keys.tags(), 1)


def test_no_ordinal_is_given_again_after_an_eviction(settings: Settings, redis: Redis) -> None:
    settings.READTRACK = {"DOTS": {"readers": "ordinal"}}
    for _ in range(3):
        factories.user()
    assert starting.give_ordinals() == starting.give_ordinals() == dict.fromkeys(keys.tags(), 2)
    redis.delete("readers")
    assert starting.give_ordinals() == dict.fromkeys(keys.tags(), 5)


def test_a_model_without_read_state_is_refused() -> None:
    for label in ("site.Publication", "site.None"):
        with pytest.raises(CommandError, match=r"no model with read state.*site\.Category"):
            call_command("readtrack", "start-as-read", model=[label])


@pytest.mark.usefixtures("_strategy")
def test_a_new_account_begins_with_everything_read_if_the_site_wants(settings: Settings) -> None:
    category, shelf = factories.category(), Shelf.objects.create(code="A")
    assert reports.unread(factories.user(), [category]) == {category}
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**settings.READTRACK.get("DOTS", {}), "start_as_read": True},
    }
    user = factories.user()
    assert reports.unread(user, [category, shelf]) == set()
    new = factories.category()
    tracker.mark_unread([category])
    user.save()
    assert reports.unread(user, [category, new]) == {category, new}
    assert reports.unread(Member.objects.create(username="by a proxy"), [category, new]) == set()


def test_an_account_that_is_not_made_or_was_made_elsewhere_starts_nothing(
    settings: Settings,
) -> None:
    settings.READTRACK = {"DOTS": {"start_as_read": True}}
    category = factories.category()
    with transaction.atomic():
        factories.user()
        transaction.set_rollback(True)
    user = factories.user(pk=50)
    fixture = (
        serializers.serialize("json", [user])
        .replace('"pk": 50', '"pk": 51')
        .replace(user.username, "loaded")
    )
    for loaded in serializers.deserialize("json", fixture):
        loaded.save()
    assert reports.reader_counts([category]) == {category: 1}


@pytest.mark.needs_parts("numbers")
def test_an_account_is_made_without_redis_or_with_an_id_out_of_bounds(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    from readtrack.numbers.models import ReaderHistory

    settings.READTRACK = {"DOTS": {"start_as_read": True}}
    set_most_bits(1000)
    category = factories.category()
    factories.user(pk=5000)
    nowhere = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    with override_settings(CACHES=nowhere):
        user = factories.user(pk=60)
    assert "dots of the new user 60 stay on" in caplog.text
    assert "new user 5000" not in caplog.text
    assert reports.unread(user, [category]) == {category}
    assert not ReaderHistory.objects.exists()
    assert Category.objects.count() == 1
