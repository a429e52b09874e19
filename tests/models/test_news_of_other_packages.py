"""News of models that are not the site's own: who wrote a row, and whether it is news at all."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save
from pytest_django import Settings

from readtrack import receivers, reports, tracker
from readtrack.access import may_view_numbers
from readtrack.subjects import author_of
from tests.site.models import Category, Gadget, Gizmo
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "lite"])

ENTRY: dict[str, Any] = {"news_for": ["content_type"], "news_author": "user"}


@pytest.fixture
def ann() -> User:
    return factories.user()


@pytest.fixture
def bob() -> User:
    return factories.user()


@pytest.fixture
def thread(settings: Settings, ann: User, bob: User) -> Iterator[ContentType]:
    """Returns an object of Django's own that both have read, and that rows of its log are news for."""
    use(settings, {"admin.LogEntry": ENTRY})
    thread, _ = ContentType.objects.get_or_create(app_label="forum", model="thread")
    for user in (ann, bob):
        tracker.mark_read(user, [thread])
    yield thread
    # Other tests write to the log of the admin, too.
    receivers_by_signal = {
        pre_save: "before_insert",
        post_save: "on_create",
        pre_delete: "before_delete",
        post_delete: "on_delete",
    }
    for signal, name in receivers_by_signal.items():
        signal.disconnect(sender=LogEntry, dispatch_uid=f"readtrack.{name}")


def use(settings: Settings, entries: dict[str, Any]) -> None:
    settings.READTRACK = {"MODELS": entries}
    receivers.connect()


def entry(thread: ContentType, user: User, flag: int = ADDITION) -> LogEntry:
    made: LogEntry = LogEntry.objects.create(content_type=thread, user=user, action_flag=flag)
    return made


def readers_with_a_dot(thread: Any, *users: User) -> list[User]:
    return [user for user in users if reports.unread(user, [thread])]


def is_addition(row: LogEntry) -> bool:
    return row.action_flag == ADDITION


def is_named(row: Gadget) -> bool:
    return bool(row.name)


def fails(row: LogEntry) -> bool:
    raise KeyError(row.pk)


def test_the_author_of_a_row_gets_no_dot_for_it(thread: ContentType, ann: User, bob: User) -> None:
    with transaction.atomic():
        entry(thread, ann)
    assert readers_with_a_dot(thread, ann, bob) == [bob]


def test_the_author_of_a_counted_row_sees_its_numbers(
    settings: Settings, thread: ContentType, ann: User, bob: User
) -> None:
    use(settings, {"admin.LogEntry": {**ENTRY, "counted": True}})
    row = entry(thread, ann)
    assert author_of(row) == str(ann.pk)
    assert may_view_numbers(ann, row)
    assert not may_view_numbers(bob, row)


@pytest.mark.parametrize("rule", [is_addition, fails])
def test_a_row_that_the_sites_function_refuses_is_no_news(
    settings: Settings, thread: ContentType, ann: User, bob: User, rule: Callable[..., bool]
) -> None:
    use(settings, {"admin.LogEntry": {**ENTRY, "is_news": f"{__name__}.{rule.__name__}"}})
    waiting = entry(thread, ann, CHANGE)
    assert readers_with_a_dot(thread, bob) == []
    tracker.publish([waiting])  # as a moderator does later
    assert readers_with_a_dot(thread, ann, bob) == [bob]


def test_a_row_that_the_sites_function_accepts_is_news(
    settings: Settings, thread: ContentType, ann: User, bob: User
) -> None:
    use(settings, {"admin.LogEntry": {**ENTRY, "is_news": f"{__name__}.is_addition"}})
    entry(thread, ann)
    assert readers_with_a_dot(thread, bob) == [bob]


def test_a_child_and_a_link_obey_the_function_of_the_parent(settings: Settings, bob: User) -> None:
    links = {"news_for": ["category", "shelves"], "is_news": f"{__name__}.is_named"}
    use(settings, {"site.Gadget": links})
    category: Category = factories.category()
    tracker.mark_read(bob, [category])
    nameless = Gizmo.objects.create(name="", category=category)
    assert readers_with_a_dot(category, bob) == []
    shelf = nameless.shelves.create(code="x")
    tracker.mark_read(bob, [shelf])
    nameless.shelves.remove(shelf)
    nameless.shelves.add(shelf)
    assert readers_with_a_dot(shelf, bob) == []
    Gizmo.objects.create(name="A", category=category).shelves.add(shelf)
    assert readers_with_a_dot(category, bob) == [bob]
    assert readers_with_a_dot(shelf, bob) == [bob]


@pytest.mark.parametrize("name", ["autor", "content_type", "action_flag"])
def test_an_author_that_is_no_user_fails_no_save(
    settings: Settings, thread: ContentType, ann: User, bob: User, name: str
) -> None:
    use(settings, {"admin.LogEntry": {**ENTRY, "news_author": name}})
    entry(thread, ann)
    assert readers_with_a_dot(thread, ann, bob) == [ann, bob]
