"""Changing strategy or numbering: nothing that was read lights up, and no news goes out."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits import readers
from readtrack.store import clock
from readtrack.unread import conversion
from tests import factories

pytestmark = pytest.mark.django_db

KINDS = [(state, numbering) for state in ("bitmap", "sequence") for numbering in ("id", "ordinal")]


def options(kind: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"READ_STATE": kind[0], "READERS": kind[1], **more}


@pytest.mark.parametrize("new", KINDS, ids=str)
@pytest.mark.parametrize("old", KINDS, ids=str)
def test_what_was_read_stays_read_and_the_rest_unread(
    old: tuple[str, str], new: tuple[str, str], settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    if old == new:
        return
    users, categories = [factories.user() for _ in range(3)], [factories.category() for _ in range(3)]
    settings.READTRACK = options(old)
    tracker.mark_read(users[0], categories)
    tracker.mark_read(users[1], categories[:2])
    tracker.mark_unread(categories[:1])
    settings.READTRACK = options(new)
    for _ in range(2):
        call_command("readtrack", "convert-reads", state=old[0], readers=old[1])
        assert [reports.unread(user, categories) for user in users] == [
            {categories[0]},
            {categories[0], categories[2]},
            set(categories),
        ]
    assert capsys.readouterr().out.splitlines()[-1].endswith(" categories, 3 reads, 0 left out.")


def test_news_that_comes_while_servers_change_over_stays_unread(settings: Any) -> None:
    user, category = factories.user(), factories.category()
    tracker.mark_read(user, [category])
    settings.READTRACK = {"READ_STATE": "sequence"}
    conversion.convert("bitmap", has_ordinals=False)
    tracker.mark_unread([category])
    conversion.convert("bitmap", has_ordinals=False)
    assert reports.unread(user, [category]) == {category}


def test_news_that_comes_while_a_category_is_converted_stays_unread(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, category = factories.user(), factories.category()
    tracker.mark_read(user, [category])
    settings.READTRACK = {"READ_STATE": "sequence"}
    before = clock.recent

    def then_news() -> int:
        as_of = before()
        numbers = [user.pk]
        monkeypatch.setattr("readtrack.store.read_state.numbers", lambda *args: iter(numbers))
        tracker.mark_unread([category])
        return as_of

    monkeypatch.setattr(clock, "recent", then_news)
    conversion.convert("bitmap", has_ordinals=False)
    monkeypatch.undo()
    assert reports.unread(user, [category]) == {category}


def test_readers_without_a_place_in_the_new_numbering_are_counted(settings: Any, redis: Redis) -> None:
    settings.READTRACK = {"READERS": "ordinal"}
    token = "site.category:1"
    for name in ("5", "a-slug", str(2**63), "anon:x", "%C2%B2"):
        tracker.mark_tokens_read(name, [token])
    redis.hdel("readers", "a-slug")
    settings.READTRACK = {"READERS": "id"}
    assert conversion.convert("bitmap", has_ordinals=True) == conversion.Converted(1, 1, 4)
    assert redis.getbit(f"category:{token}:read", 5) == 1
    settings.READTRACK = {"READERS": "ordinal", "READ_STATE": "sequence"}
    assert conversion.convert("bitmap", has_ordinals=True).left_out == 1


def test_converting_what_is_in_use_already_is_refused(settings: Any) -> None:
    with pytest.raises(CommandError, match="change READ_STATE or READERS first"):
        call_command("readtrack", "convert-reads", state="bitmap", readers="id")
    settings.READTRACK = {"READ_STATE": "sequence"}
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    with pytest.raises(CommandError, match="Redis failed"):
        call_command("readtrack", "convert-reads", state="bitmap", readers="id", verbosity=0)


def test_it_prints_nothing_when_told_so(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.READTRACK = {"READ_STATE": "sequence"}
    call_command("readtrack", "convert-reads", state="bitmap", readers="id", verbosity=0)
    assert capsys.readouterr().out == ""


def test_another_numbering_never_takes_over_the_bits_of_others(settings: Any, redis: Redis) -> None:
    category, first, second = factories.category(), factories.user(), factories.user()
    tracker.mark_read(first, [category])
    settings.READTRACK = {"READERS": "ordinal"}
    tracker.mark_read(second, [category])
    assert reports.unread(first, [category]) == {category}
    assert readers.families()[0] == "read:ordinal"
