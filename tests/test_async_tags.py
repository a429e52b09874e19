"""Tags that ask at once in a template that an async view renders, where Django refuses SQL."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db.backends.signals import connection_created
from django.http import HttpResponse
from django.template import engines
from django.test import AsyncClient
from django.urls import path
from pytest_django import Settings

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.subjects import subject_of
from tests.site.models import Category, Manual, Post
from tests.support import factories

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls(__name__),
]
NUMBERS = pytest.mark.needs_parts("numbers")


async def page(request: Any) -> HttpResponse:
    objects = {
        "category": await Category.objects.alast(),
        "post": await Post.objects.alast(),
        "manual": await Manual.objects.alast(),
    }
    if "jinja" in request.GET:
        template = engines["jinja2"].from_string(request.GET["source"])
    else:
        template = engines["django"].from_string("{% load readtrack %}" + request.GET["source"])
    return HttpResponse(template.render(objects, request))


urlpatterns = [path("page/", page)]


@pytest.fixture
def reader(settings: Settings) -> User:
    settings.READTRACK = {"MODELS": {"site.Manual": {"counted": True}}}
    factories.post(view_count=3)
    Manual.objects.create(title="A")
    return factories.user()


def fetch(user: User | None, source: str, **query: str) -> str:
    """Returns the page as ASGI serves it, on an event loop."""

    async def ask() -> Any:
        client = AsyncClient(headers={"User-Agent": factories.BROWSER})
        if user:
            await client.aforce_login(user)
        return await client.get("/page/", {"source": source, **query})

    response = async_to_sync(ask)()
    assert response.status_code == 200
    return str(response.text)


@pytest.mark.parametrize(
    ("source", "unread", "read"),
    [
        ("{% unread_dot category as x %}{{ x }}", "True", "False"),
        ("{% unread_count category as x %}{{ x }}", "1", "0"),
        ("{% if_unread category %}new{% else %}old{% endif_unread %}", "new", "old"),
    ],
)
def test_a_dot_is_that_of_the_signed_in_reader(
    reader: User, source: str, unread: str, read: str
) -> None:
    category = factories.category()
    assert fetch(reader, source) == unread
    tracker.mark_read(reader, [category])
    assert fetch(reader, source) == read
    assert fetch(None, source) == read


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{% view_count post as views %}{{ views }}", "4"),
        ("{% view_count manual as views %}{{ views }}", "1"),
        pytest.param("{% read_count post %}", "0", marks=NUMBERS),
        ("{% visitor_count post %}", "1"),
        pytest.param("{% views_in post days=7 %}", "1", marks=NUMBERS),
        (
            "{% most_viewed 'site.Post' as posts %}{% for p in posts %}{{ p.pk }}{% endfor %}",
            "{post}",
        ),
        pytest.param(
            "{% most_viewed 'site.Post' days=7 as posts %}{{ posts|length }}", "1", marks=NUMBERS
        ),
        ("{% trending as trends %}{{ trends|length }}", "{trends}"),
        pytest.param("{% trending hours=24 as trends %}{{ trends|length }}", "2", marks=NUMBERS),
    ],
)
def test_a_tag_that_asks_sql_answers_as_in_any_view(reader: User, source: str, shown: str) -> None:
    post, manual = Post.objects.get(), Manual.objects.get()
    tracker.record(factories.hit(subject_of(post), subject_of(manual)))
    flush()
    shown = shown.format(post=post.pk, trends=fetch_sync(source))
    assert fetch(reader, source) == shown
    assert fetch(None, source) == shown


def fetch_sync(source: str) -> str:
    return str(engines["django"].from_string("{% load readtrack %}" + source).render())


@pytest.mark.needs_parts("numbers")
def test_jinja2_asks_in_the_same_way(reader: User) -> None:
    assert fetch(reader, "{{ read_count(post) }}", jinja="1") == "0"


@pytest.mark.parametrize("source", ["{% view_count manual exact %}", "{% unread_dot category %}"])
def test_without_the_middleware_tags_fill_in_at_once(
    reader: User, source: str, settings: Settings
) -> None:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "readtrack" not in name]
    factories.category()
    text = fetch(reader, source)
    assert text == "0" or "readtrack-dot" in text


def test_no_thread_keeps_a_connection_to_sql(reader: User) -> None:
    made = list[Any]()

    def note(*, connection: Any, **kwargs: Any) -> None:
        made.append(connection)

    connection_created.connect(note)
    try:
        fetch(reader, "{% view_count manual as views %}{{ views }}")
    finally:
        connection_created.disconnect(note)
    assert made
    assert all(one.connection is None for one in made)
