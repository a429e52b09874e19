"""Taking over a table of what users have read."""

import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.imports.models import Import
from readtrack.store import keys, read_state, scripts
from readtrack.subjects import subject_of
from tests.site.models import Article, Category
from tests.support import factories
from tests.support.bounds import set_most_bits
from tests.support.partitions import slots_checked

pytestmark = pytest.mark.django_db(transaction=True)


def run(capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, str]:
    """Returns the figures of an import of articles, as if they were marks of their authors."""
    call_command("readtrack", "import", reads="site.Article", user_field="author", **options)
    return {
        name: count
        for count, name in re.findall(r"^ +([\d,]+)  (.+)$", capsys.readouterr().out, re.MULTILINE)
    }


def mark(user: Any, category: Category | None) -> None:
    Article.objects.bulk_create([Article(author=user, category=category)])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"DOTS": {"form": "sequence"}},
        {"DOTS": {"readers": "ordinal", "form": "sequence"}},
        {"DOTS": {"readers": "ordinal"}},
    ],
)
def test_what_the_table_says_is_read_is_read(
    options: dict[str, Any],
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 2)
    settings.READTRACK = options
    users, categories = (
        [factories.user() for _ in range(2)],
        [factories.category() for _ in range(3)],
    )
    for user, category in [(0, 0), (0, 1), (1, 1), (0, 1)]:
        mark(users[user], categories[category])
    mark(users[0], None)
    mark(None, categories[0])
    for _ in range(2):
        found = run(capsys)
        assert (found["read"], found["counted"]) == ("4", "4")
        assert [reports.unread(user, categories) for user in users] == [
            {categories[2]},
            {categories[0], categories[2]},
        ]


def test_each_partition_numbers_the_readers_for_itself(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.READTRACK = {"CLUSTER": {"partitions": 16}, "DOTS": {"readers": "ordinal"}}
    here, there = factories.category(pk=3001), factories.category(pk=3002)
    assert keys.tag(subject_of(here)) != keys.tag(subject_of(there))
    readers = [factories.user() for _ in range(3)]
    read_state.begin(0)
    for reader in readers[:2]:  # so that the third one's ordinals differ
        tracker.mark_read(reader, [here])
    mark(readers[2], here)
    mark(readers[2], there)
    with slots_checked():
        run(capsys)
    tracker.mark_read(readers[0], [there])
    unread = [reports.unread(reader, [here, there]) for reader in readers]
    assert unread == [set(), {there}, set()]


def test_a_dry_run_marks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    set_most_bits(1000)
    user, category = factories.user(pk=7), factories.category()
    mark(user, category)
    mark(factories.user(pk=1001), category)
    found = run(capsys, dry_run=True)
    assert (found["read"], found["counted"], found["  id out of bounds (50%)"]) == ("2", "1", "1")
    assert reports.unread(user, [category]) == {category}
    assert not Import.objects.exists()


def test_importing_again_hides_nothing_that_was_published_since(
    capsys: pytest.CaptureFixture[str],
) -> None:
    user, category = factories.user(), factories.category()
    mark(user, category)
    run(capsys)
    tracker.mark_unread([category])
    assert run(capsys)["  published to since the import began (100%)"] == "1"
    assert reports.unread(user, [category]) == {category}


def test_importing_again_after_redis_lost_the_times_of_publications_is_refused(
    capsys: pytest.CaptureFixture[str], redis: Redis
) -> None:
    mark(factories.user(), factories.category())
    run(capsys)
    flush()
    redis.flushdb()
    flush()
    with pytest.raises(CommandError, match="could hide what is new since"):
        run(capsys)


@pytest.mark.parametrize(
    ("reads", "user", "category", "reason"),
    [
        ("site.None", "author", "category", "There is no model"),
        ("site.Article", "writer", "category", "a user by 'writer'"),
        ("site.Article", "author", "title", "by 'title' at read state"),
        ("site.Article", "author", "author", "at read state"),
        ("site.Article", "category", "category", "at a user"),
    ],
)
def test_a_table_that_says_nothing_of_users_and_categories_is_refused(
    reads: str, user: str, category: str, reason: str
) -> None:
    with pytest.raises(CommandError, match=reason):
        call_command("readtrack", "import", reads=reads, user_field=user, category_field=category)


def test_two_sources_at_once_are_refused() -> None:
    with pytest.raises(CommandError, match="or a table by --reads"):
        call_command("readtrack", "import", reads="site.Article", app="hitcount")
