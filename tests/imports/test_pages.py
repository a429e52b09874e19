"""Looking up many pages at once finds what looking them up one by one finds."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.urls import path
from django.views.generic import DetailView
from pytest_django import DjangoAssertNumQueries, Settings

from readtrack.imports import pages
from readtrack.imports.pages import Pages, look_up
from tests.imports import urls
from tests.site.models import Page, Post
from tests.support import factories

pytestmark = pytest.mark.django_db

sliced = DetailView.as_view(queryset=Post.objects.all()[:1])
urlpatterns = [path("sliced/<int:pk>/", sliced), *urls.urlpatterns]


@pytest.fixture
def paths(settings: Settings) -> Sequence[str]:
    """Pages of every kind, of objects that exist or not."""
    settings.ROOT_URLCONF = "tests.imports.test_pages"
    settings.READTRACK = {
        "IMPORTS": {
            "views": {
                "plain": "site.Post",
                "shown:site:show": ("site.Post", "number"),
                "old": lambda path, title: Post.objects.get(title=title),
            }
        }
    }
    first, second = factories.post(title="News one"), factories.post(title="Two")
    page = Page.objects.create(pk="a b:c")
    keys = [first.pk, second.pk, second.pk + 1, 2**62, 2**70]
    return [
        *(f"/posts/{key}/" for key in keys),
        f"/posts/0{first.pk}/",
        *(f"/news/{key}/" for key in keys),
        *(f"/plain/{key}/" for key in keys),
        *(f"/sliced/{key}/" for key in keys),
        f"/titles/{first.title}/",
        "/titles/none/",
        "/titles/nu\0ll/",
        "/old/Two",
        "/old/none",
        f"/pages/{page.pk}/",
        "/pages/none/",
        f"/own/{first.title}/",
        "/none/",
        "/there/is/nothing",
    ]


def test_pages_that_are_looked_up_together_show_the_objects_that_each_one_shows(
    paths: Sequence[str],
) -> None:
    prepared = Pages()
    prepared.prepare(paths)
    found = {path: prepared.look_up(path) for path in paths}
    assert found == {path: look_up(path) for path in paths}
    assert len({each.subject for each in found.values()}) > 4
    assert any(each.error for each in found.values())


def test_pages_of_one_view_take_one_query(
    paths: Sequence[str], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    posts = [f"/posts/{factories.post().pk}/" for _ in range(20)]
    prepared = Pages()
    with django_assert_num_queries(1):
        prepared.prepare(posts)
        subjects = {prepared.look_up(path).subject for path in posts}
    assert len(subjects) == 20
    with django_assert_num_queries(0):
        prepared.prepare(posts)


def test_a_function_is_asked_only_about_paths_that_are_looked_up(settings: Settings) -> None:
    asked: list[str] = []

    def find(path: str, **_arguments: Any) -> None:
        asked.append(path)

    settings.ROOT_URLCONF = "tests.imports.urls"
    settings.READTRACK = {"IMPORTS": {"views": {"plain": find}}}
    prepared = Pages()
    prepared.prepare(["/plain/1/", "/plain/2/"])
    assert asked == []
    prepared.look_up("/plain/2/")
    assert asked == ["/plain/2/"]


def test_the_number_of_remembered_paths_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_PATHS", 3)
    prepared = Pages()
    for number in range(10):
        assert prepared.look_up(f"/nothing/{number}").subject is None
        assert len(prepared._found) <= 3
