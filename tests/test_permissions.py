"""Numbers are for editors, for the authors of what they are about, and for whom the site's rule names."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models import Model
from pytest_django import DjangoAssertNumQueries, Settings

from readtrack.reports.access import author_of, may_view_numbers
from tests.site.models import Article, Category
from tests.support import factories

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"


def editor() -> User:
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_numbers"))
    return user


# People by name: how to make one, and the answer for (the site, another's article, an article of their own).
PEOPLE: dict[str, tuple[Callable[[], User | None], tuple[bool, bool, bool]]] = {
    "anonymous": (lambda: None, (False, False, False)),
    "reader": (factories.user, (False, False, True)),
    "staff without the permission": (lambda: factories.user(is_staff=True), (False, False, True)),
    "editor": (editor, (True, True, True)),
    "superuser": (lambda: User.objects.create_superuser("root"), (True, True, True)),
}


def article(user: Any) -> Article:
    return Article.objects.create(author=user, category=factories.category())


@pytest.mark.parametrize("name", PEOPLE)
def test_editors_see_all_numbers_and_authors_their_own(name: str) -> None:
    make, expected = PEOPLE[name]
    user = make()
    other = article(factories.user())
    own = article(user)
    asked = user or AnonymousUser()
    assert tuple(may_view_numbers(asked, obj) for obj in (None, other, own)) == expected
    assert not may_view_numbers(None, own)


def test_the_permission_is_for_staff_only() -> None:
    user = editor()
    User.objects.filter(pk=user.pk).update(is_staff=False)
    assert not may_view_numbers(User.objects.get(pk=user.pk))


@pytest.mark.parametrize("make", [factories.post, lambda: Article.objects.create(), factories.category])
def test_nobody_is_the_author_of_what_has_none(make: Callable[[], Model]) -> None:
    obj = make()
    assert author_of(obj) == ""
    assert not may_view_numbers(factories.user(), obj)


def test_a_key_to_another_model_names_no_author(monkeypatch: pytest.MonkeyPatch) -> None:
    user = factories.user()
    monkeypatch.setattr(Article, "news_author", "category")
    assert author_of(Article.objects.create(category=factories.category(pk=user.pk))) == ""


def test_others_are_refused_without_a_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    user, other = factories.user(), article(factories.user())
    with django_assert_num_queries(0):
        assert not may_view_numbers(user, other)


def knows_category(user: Any, obj: Any) -> Any:
    """A site's rule."""
    if user.username == "broken":
        raise LookupError
    return "yes" if obj is None else isinstance(obj, Category)


def test_the_sites_own_rule_decides_alone(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.READTRACK = {"VIEW_NUMBERS": f"{__name__}.knows_category"}
    user = editor()
    asked = (None, article(user), factories.category())
    assert [may_view_numbers(user, obj) for obj in asked] == [False, False, True]
    assert not may_view_numbers(AnonymousUser(), asked[2])
    with caplog.at_level(logging.ERROR, logger="readtrack"):
        assert not may_view_numbers(factories.user(username="broken"), asked[2])
    assert "the numbers are not shown" in caplog.text


def allow(user: Any, obj: Any) -> bool:
    """Another rule."""
    return True


def test_whom_the_rule_names_has_the_dashboard_in_the_app_list(settings: Settings) -> None:
    client = factories.browser(factories.user(is_staff=True))
    assert DASHBOARD not in client.get("/admin/").text
    settings.READTRACK = {"VIEW_NUMBERS": f"{__name__}.allow"}
    assert DASHBOARD in client.get("/admin/").text
    assert client.get(DASHBOARD).status_code == 200
