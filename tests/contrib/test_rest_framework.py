"""Counts and dots of Django REST framework."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from pytest_django import DjangoAssertNumQueries
from rest_framework.generics import RetrieveUpdateAPIView
from rest_framework.metadata import SimpleMetadata
from rest_framework.serializers import BooleanField, IntegerField, ModelSerializer

from readtrack import tracker
from readtrack.contrib.rest_framework import (
    CountViewsMixin,
    UnreadCountField,
    UnreadField,
    ViewCountField,
)
from readtrack.middleware import ReadTrackMiddleware
from tests.site.models import Category, Post
from tests.support import factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


class CategorySerializer(ModelSerializer):  # type: ignore[misc]
    is_unread = UnreadField()

    class Meta:
        model = Category
        fields = ("name", "is_unread")


class PostSerializer(ModelSerializer):  # type: ignore[misc]
    views = ViewCountField()
    news = UnreadCountField(source="category")

    class Meta:
        model = Post
        fields = ("title", "views", "news")


class NestedSerializer(ModelSerializer):  # type: ignore[misc]
    category = CategorySerializer()

    class Meta:
        model = Post
        fields = ("category",)


class PostView(CountViewsMixin, RetrieveUpdateAPIView):  # type: ignore[misc]
    queryset = Post.objects.all()
    serializer_class = PostSerializer


@pytest.fixture
def posts() -> list[Any]:
    """Returns three posts, viewed 1, 2 and 3 times, of unread categories of their own."""
    return [
        factories.post(view_count=number, category=factories.category()) for number in (1, 2, 3)
    ]


def asked_by(rf: Any, user: Any) -> dict[str, Any]:
    request = rf.get("/")
    request.user = user
    return {"request": request}


def test_a_list_asks_once_for_its_views_and_once_for_what_is_new(
    posts: list[Any], rf: Any, wire: Wire, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    context = asked_by(rf, factories.user())
    tracker.mark_read(context["request"].user, [posts[0].category])
    with django_assert_num_queries(1), wire.counted() as trips:
        data = PostSerializer(
            Post.objects.select_related("category").order_by("pk"), many=True, context=context
        ).data
    assert [(each["views"], each["news"]) for each in data] == [(1, 0), (2, 1), (3, 1)]
    assert trips == [2]


def test_one_object_and_objects_within_others_are_asked_for_alone(
    posts: list[Any], rf: Any
) -> None:
    context = asked_by(rf, factories.user())
    tracker.mark_read(context["request"].user, [posts[0].category])
    shown = [
        NestedSerializer(post, context=context).data["category"]["is_unread"] for post in posts
    ]
    assert shown == [False, True, True]
    assert PostSerializer(posts[2], context=context).data["views"] == 3


def test_nothing_is_new_to_anonymous_users_and_without_a_request(posts: list[Any], rf: Any) -> None:
    for context in ({}, asked_by(rf, AnonymousUser())):
        assert [
            each["news"] for each in PostSerializer(posts, many=True, context=context).data
        ] == [0, 0, 0]


def test_an_object_that_is_missing_is_null(posts: list[Any], rf: Any) -> None:
    Post.objects.filter(pk=posts[0].pk).update(category=None)
    data = PostSerializer(
        Post.objects.order_by("pk"), many=True, context=asked_by(rf, factories.user())
    ).data
    assert [each["news"] for each in data] == [None, 1, 1]


@pytest.mark.parametrize(("method", "views"), [("get", 1), ("put", 0), ("patch", 0)])
def test_a_view_counts_what_it_retrieves(rf: Any, method: str, views: int) -> None:
    post = factories.post()
    request = getattr(rf, method)("/", {"title": "New"}, content_type="application/json")
    request.META["HTTP_USER_AGENT"], request.user = factories.BROWSER, AnonymousUser()
    view = PostView.as_view()
    response: Any = ReadTrackMiddleware(lambda request: view(request, pk=post.pk).render())(request)
    assert response.status_code == 200
    assert PostSerializer(post).data["views"] == views


def test_a_manager_in_place_of_a_queryset_is_a_list_as_well(posts: list[Any]) -> None:
    shown = PostSerializer(Post.objects, many=True).data
    assert sorted(row["views"] for row in shown) == [1, 2, 3]


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        (ViewCountField(), "integer"),
        (UnreadCountField(), "integer"),
        (UnreadCountField(source="category"), "integer"),
        (UnreadField(), "boolean"),
        (UnreadField(source="category", help_text="Something is new"), "boolean"),
    ],
    ids=repr,
)
def test_a_schema_knows_the_type_of_each_field(field: Any, kind: str) -> None:
    assert SimpleMetadata().get_field_info(field)["type"] == kind
    # Generators of OpenAPI ask for the class.
    assert isinstance(field, IntegerField) is (kind == "integer")
    assert isinstance(field, BooleanField) is (kind == "boolean")
