"""Read state of many categories at once, of a whole model, and from the event loop."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser
from django.test import AsyncClient
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.store import clock, scripts
from tests.site.models import Category, Department
from tests.support import factories

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def user() -> Any:
    return factories.user()


@pytest.fixture
def categories() -> list[Category]:
    return [factories.category() for _ in range(4)]


@pytest.mark.parametrize(
    ("choose", "left"),
    [
        (lambda: Category, 0),
        (lambda: Category.objects.order_by("name"), 0),
        (lambda: Category.objects.all()[:3], 1),
        (lambda: Category.objects.none(), 4),
        (lambda: list(Category.objects.all())[1:], 1),
    ],
)
def test_everything_is_marked_read_without_loading_it(
    choose: Any, left: int, user: Any, categories: list[Category]
) -> None:
    tracker.mark_all_read(user, choose())
    assert len(reports.unread(user, categories)) == left


def test_more_than_a_script_takes_is_marked_in_portions(
    user: Any, categories: list[Category], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 3)
    tracker.mark_read(user, categories)
    assert reports.unread(user, categories) == set()
    tracker.mark_unread(categories)
    assert reports.unread(user, categories) == set(categories)
    tracker.publish(factories.post(category=category) for category in categories)


@pytest.mark.parametrize(
    "mark",
    [
        tracker.mark_read,
        tracker.mark_all_read,
        lambda user, _, as_of: tracker.mark_all_read(user, Category, as_of=as_of),
    ],
)
def test_news_after_a_moment_stays_unread(mark: Any, user: Any, categories: list[Category]) -> None:
    as_of = reports.as_of()
    tracker.mark_unread(categories[:1])
    mark(user, categories, as_of=as_of)
    assert reports.unread(user, categories) == {categories[0]}


def test_the_present_moment_needs_no_question_to_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    clock._offsets.clear()
    before = reports.as_of()
    monkeypatch.setattr(clock, "FRESH", 60.0)
    monkeypatch.setattr(clock, "server_time", None)
    assert before <= reports.as_of() < before + 60_000_000


def test_readers_are_counted_for_each(categories: list[Category]) -> None:
    for count in range(3):
        tracker.mark_read(factories.user(), categories[count:])
    assert list(reports.reader_counts(categories).values()) == [1, 2, 3, 3]


def test_anonymous_users_have_nothing_new(categories: list[Category]) -> None:
    assert reports.unread(AnonymousUser(), categories) == set()
    assert reports.unread_counts(AnonymousUser(), categories) == dict.fromkeys(categories, 0)


def test_what_has_no_read_state_or_says_it_is_empty_is_never_unread(
    user: Any, categories: list[Any]
) -> None:
    categories[0].has_news = False
    assert reports.unread(user, [*categories[:2], factories.post()]) == {categories[1]}
    assert reports.unread_counts(user, categories[:2]) == {categories[0]: 0, categories[1]: 1}


def test_every_call_can_be_awaited(user: Any, categories: list[Category]) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))

    async def calls() -> None:
        await tracker.amark_all_read(user, Category)
        assert await reports.aunread(user, categories) == set()
        await tracker.amark_unread(categories[:2])
        await tracker.amark_read(user, categories[:1])
        assert await reports.aunread_counts(user, categories[:2]) == dict(
            zip(categories, (0, 1), strict=False)
        )
        assert (await reports.areader_counts(categories[:1]))[categories[0]] == 1
        await tracker.apublish([])
        assert await reports.aviews([post]) == {post: 1}

    async_to_sync(calls)()


def test_a_child_of_a_model_with_dots_has_the_dots_of_its_parent(
    user: Any, redis: Redis, django_capture_on_commit_callbacks: Any
) -> None:
    department = Department.objects.create(name="Research")
    category = Category.objects.get(pk=department.pk)
    tracker.mark_read(user, [department])
    assert reports.unread(user, [category, department]) == set()
    with django_capture_on_commit_callbacks(execute=True):
        factories.post(category=category)
    assert reports.unread(user, [department]) == {department}
    tracker.mark_read(user, [category])
    with django_capture_on_commit_callbacks(execute=True):
        department.delete()
    assert not redis.keys("category:*:read")


@pytest.mark.parametrize("options", [{}, {"ANONYMOUS": "hash"}], ids=str)
def test_an_api_that_counts_its_request_answers_with_that_view(
    settings: Settings, options: dict[str, str]
) -> None:
    settings.READTRACK = {**settings.READTRACK, **options}
    post, other = factories.post(), factories.post()
    url = f"/posts/{post.pk}/count/"
    one, two = factories.browser(), factories.browser(REMOTE_ADDR="203.0.113.7")
    assert [one.get(url).json()["views"] for _ in range(2)] == [[1, 0], [1, 0]]
    assert two.get(url).json()["views"] == [2, 0]
    assert two.get(f"{url}?quiet").json()["views"] == [2, 0]
    assert factories.browser(factories.user()).get(url).json()["views"] == [3, 0]
    assert reports.views([post, other]) == {post: 3, other: 0}


def test_an_async_api_answers_with_its_own_view() -> None:
    post = factories.post()
    for _ in range(2):
        assert factories.fetch_async(AsyncClient(), f"/posts/{post.pk}/count/async/").json() == {
            "views": [1]
        }


@pytest.mark.parametrize(
    ("headers", "limit"),
    [({"User-Agent": "curl/8"}, 5), ({"Sec-Purpose": "prefetch"}, 5), ({}, 1)],
    ids=str,
)
def test_an_api_does_not_answer_with_a_view_that_is_refused(
    settings: Settings, headers: dict[str, str], limit: int
) -> None:
    settings.READTRACK = {**settings.READTRACK, "RATE": (limit, 10)}
    post, client = factories.post(), factories.browser()
    client.get(factories.post().get_absolute_url())
    if limit == 1:
        client.get(factories.post().get_absolute_url())
    assert client.get(f"/posts/{post.pk}/count/", headers=headers).json()["views"][0] == 0
    assert reports.views([post]) == {post: 0}


def test_without_redis_an_api_answers_with_what_sql_stores(settings: Settings) -> None:
    post = factories.post(view_count=7)
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    assert factories.browser().get(f"/posts/{post.pk}/count/").json() == {"views": [7]}
