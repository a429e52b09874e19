"""Authors see the numbers of their own objects, and nothing of others."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from readtrack.subjects import subject_of
from tests.api.conftest import Site, answered, asked, assert_same, exported
from tests.support import factories
from tests.support.rows import each_row

pytestmark = pytest.mark.django_db

#: The questions that an author may ask, and the tables of the author's page.
OF_AUTHORS: dict[str, tuple[str, dict[str, str], str]] = {
    "numbers": ("numbers", {}, "over-time"),
    "top": ("top", {}, "most-viewed"),
    "grew": ("grew", {}, "grew-most"),
    "sources": ("breakdown", {"dimension": "referrer"}, "by-referrer"),
    "reading": ("reading", {}, "really-read"),
    "funnel": ("funnel", {}, "funnel"),
    "categories": ("groups", {"group": "category"}, "views-by-section"),
    "still read": ("still_read", {}, "still-read"),
    "trending": ("trending", {}, "trending"),
    "now": ("now", {}, "now"),
}
#: The questions about an object, and the tables of its page.
OF_OBJECTS: dict[str, tuple[str, dict[str, str], str]] = {
    "numbers": ("numbers", {}, "over-time"),
    "sources": ("breakdown", {"dimension": "referrer"}, "by-referrer"),
    "reading": ("reading", {}, "really-read"),
    "funnel": ("funnel", {}, "funnel"),
    "now": ("now", {}, "now"),
}


@each_row("name", OF_AUTHORS)
def test_an_author_gets_the_numbers_of_the_authors_page(name: str, site: Site) -> None:
    question, given, table = OF_AUTHORS[name]
    answer = answered(site.author, question, **given)
    assert_same(answer, exported(site.author, table, "author/"))
    text = json.dumps(answer)
    assert site.articles[2].title not in text
    assert site.post.title not in text
    assert "newsletter" not in text


@each_row("is_author", [True, False])
@each_row("name", OF_OBJECTS)
def test_an_object_has_the_numbers_of_its_page(name: str, is_author: bool, site: Site) -> None:
    question, given, table = OF_OBJECTS[name]
    subject = subject_of(site.articles[0])
    user = site.author if is_author else site.editor
    answer = answered(user, question, object=subject, **given)
    assert_same(answer, exported(user, table, f"object/{subject}/"))


def test_since_publication_is_the_period_of_the_objects_page(site: Site) -> None:
    subject = subject_of(site.articles[0])
    answer = answered(site.author, "numbers", object=subject, period="published")
    file = exported(site.author, "over-time", f"object/{subject}/", period="published")
    assert_same(answer, file)
    assert answer["times_usual"] is None


def test_a_source_of_an_object_has_the_numbers_of_its_page(site: Site) -> None:
    subject = subject_of(site.articles[0])
    given = {"dimension": "referrer", "value": "example.com"}
    answer = answered(site.author, "numbers", object=subject, **given)
    path = f"object/{subject}/"
    assert_same(answer, exported(site.author, "over-time", path, referrer="example.com"))
    assert answer["totals"]["views"]["count"] == 1


def test_an_author_is_refused_everything_else(site: Site) -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("unread", {}),
        ("refused", {"group": "reason"}),
        ("refused", {"group": "robot"}),
        ("numbers", {"object": subject_of(site.articles[2])}),
        ("numbers", {"object": subject_of(site.post)}),
        ("numbers", {"object": "site.article:99999999"}),
        ("numbers", {"object": "site.article:x"}),
        ("numbers", {"object": "auth.user:1"}),
        ("top", {"author": site.other.pk}),
        ("top", {"author": "99999999"}),
        ("top", {"author": "x"}),
        ("top", {"category": subject_of(site.news)}),
        ("top", {"category": "site.category:99999999"}),
    ]
    for question, given in refused:
        response = asked(site.author, question, **given)
        assert response.status_code == 403, (question, given)
        assert response.json()["error"]["code"] == "not_allowed"


def test_what_an_author_may_not_see_looks_as_what_does_not_exist(site: Site) -> None:
    there = asked(site.author, "numbers", object=subject_of(site.articles[2]))
    missing = asked(site.author, "numbers", object="site.article:99999999")
    assert there.content == missing.content


def test_an_author_may_name_the_own_key(site: Site) -> None:
    own = answered(site.author, "top", author=str(site.author.pk))
    assert own["rows"] == answered(site.author, "top")["rows"]


def test_a_user_without_anything_has_no_numbers(site: Site) -> None:
    nobody = factories.user()
    assert answered(nobody, "top")["rows"] == []
    assert answered(nobody, "numbers")["totals"]["views"]["count"] == 0


def _posts_only(user: User, obj: Any) -> bool:
    return obj is not None and obj._meta.label == "site.Post"


def test_the_sites_own_rule_decides(site: Site, settings: Settings) -> None:
    rule = f"{__name__}._posts_only"
    settings.READTRACK = {**settings.READTRACK, "VIEW_NUMBERS": rule}
    for user in (site.editor, site.author):
        answered(user, "numbers", object=subject_of(site.post))
        assert asked(user, "numbers").status_code == 403
        assert asked(user, "numbers", object=subject_of(site.articles[0])).status_code == 403
