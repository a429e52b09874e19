"""Programs ask what the user of their token opened, and get what nobody else has opened."""

import pytest
from pytest_django import Settings

from readtrack.api import openapi
from readtrack.subjects import subject_of
from tests.api.conftest import answered, asked
from tests.recent.conftest import Keep, posts, signed_in
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


@pytest.mark.usefixtures("keep")
def test_the_token_decides_whose_list_is_answered() -> None:
    (ann, by_ann), (bob, by_bob) = signed_in(), signed_in()
    first, second, third = posts(3)
    for post in (first, second):
        by_ann.get(f"/posts/{post.pk}/plain/")
    by_bob.get(f"/posts/{third.pk}/plain/")
    answer = answered(ann, "recently_viewed")
    assert (answer["is_complete"], answer["row_count"]) == (True, 2)
    assert [row["title"] for row in answer["rows"]] == ["Post 2", "Post 1"]
    assert [row["title"] for row in answered(bob, "recently_viewed")["rows"]] == ["Post 3"]
    assert asked(ann, "recently_viewed", author=bob.pk).status_code == 400


@pytest.mark.usefixtures("keep")
def test_an_answer_has_the_rows_that_its_schema_says() -> None:
    user, browser = signed_in()
    first, second = posts(2)
    for post in (first, second):
        browser.get(f"/posts/{post.pk}/plain/")
    answer = answered(user, "recently_viewed", limit=1, model="site.post")
    [row] = answer["rows"]
    assert answer["row_count"] == 2
    assert row["url"] == f"/posts/{second.pk}/"
    assert row["filters"] == {"object": subject_of(second)}
    assert row["opened"].endswith("+00:00")
    schema = openapi.description("/api/")["components"]["schemas"]["recently_viewed"]
    assert schema["properties"].keys() == answer.keys()
    of_row = schema["properties"]["rows"]["items"]["properties"]
    assert of_row.keys() == row.keys()
    assert of_row["opened"] == {"type": "string", "format": "date-time"}


def test_it_is_asked_only_where_something_is_kept(keep: Keep, settings: Settings) -> None:
    user, _ = signed_in()
    settings.READTRACK = {}
    assert asked(user, "recently_viewed").status_code == 404
    assert "recently_viewed" not in asked(user, "").text
    keep()
    assert "recently_viewed" in asked(user, "").text


@pytest.mark.usefixtures("keep")
def test_the_answer_without_redis_says_that_it_is_not_complete(wire: Wire) -> None:
    user, _ = signed_in()
    wire.cut()
    answer = answered(user, "recently_viewed")
    assert (answer["is_complete"], answer["row_count"], answer["rows"]) == (False, 0, [])
