"""Paths of a log are resolved to the objects that they show."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.test.utils import override_settings
from django.urls import set_script_prefix

from readtrack.imports.pages import subject_at
from tests.site.models import Page, Post, Product, Review
from tests.support import factories
from tests.support.rows import each_row

ROWS = uuid.UUID(int=7)

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _site() -> Iterator[None]:
    with override_settings(ROOT_URLCONF="tests.imports.urls"):
        yield


@pytest.fixture
def post() -> Post:
    return factories.post(pk=4, title="Hello, world", category=factories.category(name="shelf"))


@pytest.mark.usefixtures("post")
@each_row(
    ("path", "expected"),
    [
        ("/posts/4/", "site.post:4"),
        ("/members/4/", "site.post:4"),
        ("/de/posts/4/", "site.post:4"),
        ("/titles/Hello, world/", "site.post:4"),
        ("/shelves/shelf/", "site.post:4"),
        ("/numbers/x/", None),
        ("/headlines/4/", "site.post:4"),
        ("/posts/5/", ""),
        ("/news/4/", ""),
        ("/titles/hello/", ""),
        ("/titles/a\0b/", None),
        (f"/posts/{10**30}/", None),
        (f"/titles/{'x' * 200}/", None),
        ("/products/nonsense/", None),
        ("/posts/4/edit/", None),
        ("/code/4/", None),
        ("/categories/4/", None),
        ("/plain/4/", None),
        ("/none/", None),
        ("/nowhere/", None),
        ("/", None),
        ("", None),
    ],
)
def test_a_path_shows_what_its_detail_view_says(path: str, expected: str | None) -> None:
    assert subject_at(path) == expected


def test_keys_of_every_kind_are_found() -> None:
    Product.objects.create(pk=ROWS)
    Page.objects.create(pk="a b:c")
    review = Review.objects.create()
    assert (
        subject_at(f"/products/{ROWS}/")
        == subject_at(f"/products/{ROWS.hex}/")
        == f"site.product:{ROWS}"
    )
    assert subject_at("/pages/a b:c/") == "site.page:a%20b%3Ac"
    assert subject_at(f"/reviews/{review.pk}/") == f"site.post:{review.pk}"


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ({"plain": "site.Post"}, "/plain/4/", "site.post:4"),
        ({"shown:show": ("site.Post", "number")}, "/shown/4/", "site.post:4"),
        ({"old": ("site.Post", "title", "title")}, "/old/Hello, world", "site.post:4"),
        ({"tests.imports.urls.show": ("site.Post", "number")}, "/shown/4/", "site.post:4"),
        ({"none": "site.Post"}, "/none/", None),
        (
            {"old": lambda path, title: Post.objects.get(title=title)},
            "/old/Hello, world",
            "site.post:4",
        ),
        ({"old": lambda path, title: None}, "/old/Hello, world", None),
        ({"old": lambda path, title: User(pk=4)}, "/old/Hello, world", None),
        # Wagtail's only URL has one group without a name.
        (
            {"tree": lambda path, rest: Post.objects.get(title=rest[:-1])},
            "/tree/Hello, world/",
            "site.post:4",
        ),
        (
            {"tree": lambda path, *args: Post.objects.get(title=path[6:-1])},
            "/tree/Hello, world/",
            "site.post:4",
        ),
    ],
)
@pytest.mark.usefixtures("post")
def test_a_function_view_is_explained_by_a_setting(
    rules: object, path: str, expected: str | None
) -> None:
    with override_settings(READTRACK={"IMPORTS": {"views": rules}}):
        assert subject_at(path) == expected


def not_found(path: str, **kwargs: str) -> Post:
    raise Http404


def deleted(path: str, **kwargs: str) -> Post:
    post = factories.post()
    post.delete()
    return post


@pytest.mark.parametrize("title", ["nowhere", "a\0b", "twice"])
@pytest.mark.parametrize(
    "find",
    [
        lambda path, title: Post.objects.get(title=title),
        lambda path, title: get_object_or_404(Post, title=title),
        lambda path, title: Post.objects.get(pk=title),
        not_found,
        deleted,
    ],
)
def test_a_function_that_finds_no_object_does_not_end_the_import(title: str, find: Any) -> None:
    for _ in range(2):
        factories.post(title="twice")
    with override_settings(READTRACK={"IMPORTS": {"views": {"old": find}}}):
        assert subject_at(f"/old/{title}") == ""


def test_a_fault_in_a_sites_function_is_not_hidden() -> None:
    rules = {"old": lambda path, titel: None}
    with (
        override_settings(READTRACK={"IMPORTS": {"views": rules}}),
        pytest.raises(TypeError, match="title"),
    ):
        subject_at("/old/Hello")


@pytest.mark.usefixtures("post")
def test_a_site_below_a_path_is_found() -> None:
    set_script_prefix("/site/")
    try:
        assert subject_at("/site/posts/4/") == "site.post:4"
    finally:
        set_script_prefix("/")
