"""Tokens of the API: made in the admin, shown once, stored as a hash, and refused once revoked."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks, Settings

from readtrack.api import users
from readtrack.api.models import USE_NOTED_EVERY, ApiToken, digest_of, make_token
from tests.api.conftest import API, editor
from tests.site.models import Category
from tests.support import factories

pytestmark = pytest.mark.django_db

TOKENS = "/admin/readtrack_api/apitoken/"


def maker(**values: Any) -> User:
    """Returns a user who may make tokens."""
    user = factories.user(is_staff=True, **values)
    user.user_permissions.add(Permission.objects.get(codename="add_apitoken"))
    return user


def made(user: User, /, **given: Any) -> str:
    """Returns the page after a token was made in the admin."""
    client = factories.browser(user)
    response = client.post(f"{TOKENS}add/", {"name": "report", "expires_0": "", **given})
    assert response.status_code == 200, response.text
    assert "no-store" in response["Cache-Control"]
    return response.text


def text_in(page: str) -> str:
    """Returns the token that the page shows."""
    [text] = re.findall(r'id="readtrack-token">([^<]+)<', page)
    assert re.fullmatch("rt_[A-Za-z0-9_-]{43}", text)
    return str(text)


def status(text: str) -> int:
    headers = {"Authorization": f"Bearer {text}"}
    return int(Client().get(f"{API}top", headers=headers).status_code)


def test_the_form_has_one_button_because_the_token_is_shown_next() -> None:
    page = factories.browser(maker()).get(f"{TOKENS}add/").text
    assert 'name="_save"' in page
    assert "_addanother" not in page
    assert "_continue" not in page


def test_a_token_is_shown_once_and_stored_as_a_hash() -> None:
    user = maker()
    text = text_in(made(user))
    token = ApiToken.objects.get()
    assert token.user == user
    assert token.prefix == text[:8]
    assert token.digest == digest_of(text)
    client = factories.browser(user)
    for page in (TOKENS, f"{TOKENS}{token.pk}/change/", "/admin/"):
        shown = client.get(page).text
        assert text not in shown
        assert token.digest not in shown
    assert token.prefix in client.get(TOKENS).text
    kept: list[Any] = [*LogEntry.objects.values_list("object_repr", "change_message")]
    kept += [session.get_decoded() for session in Session.objects.all()]
    assert text not in str(kept)
    assert text not in str([*ApiToken.objects.values()])


def test_no_two_tokens_are_alike() -> None:
    user = maker()
    texts = {make_token(user, "again").text for _ in range(100)}
    assert len(texts) == 100


def test_only_users_with_the_permission_make_tokens() -> None:
    client = factories.browser(editor())
    assert client.get(TOKENS).status_code == 403
    assert client.post(f"{TOKENS}add/", {"name": "x"}).status_code == 403
    assert ApiToken.objects.count() == 0


def test_nobody_makes_a_token_with_the_permissions_of_another_user() -> None:
    user = maker()
    page = factories.browser(user).get(f"{TOKENS}add/").text
    assert 'name="user"' not in page
    made(user, user=str(factories.user(is_superuser=True).pk))
    assert ApiToken.objects.get().user == user


def test_a_superuser_makes_a_token_of_a_service_account() -> None:
    service = factories.user()
    made(factories.user(is_staff=True, is_superuser=True), user=str(service.pk))
    assert ApiToken.objects.get().user == service


def test_everybody_sees_own_tokens_only_except_superusers() -> None:
    user = maker()
    own, another = make_token(user, "mine").row, make_token(maker(), "theirs").row
    client = factories.browser(user)
    assert "mine" in client.get(TOKENS).text
    assert "theirs" not in client.get(TOKENS).text
    assert client.get(f"{TOKENS}{another.pk}/change/").status_code == 302
    assert client.get(f"{TOKENS}{own.pk}/change/").status_code == 200
    everything = factories.browser(factories.user(is_staff=True, is_superuser=True))
    assert "theirs" in everything.get(TOKENS).text


def test_a_revoked_token_is_refused_at_once_and_only_owners_revoke() -> None:
    user = maker()
    text, row = make_token(user, "mine")
    another_text, another = make_token(maker(), "theirs")
    selected = {"action": "revoke", "_selected_action": [row.pk, another.pk]}
    assert status(text) == 200
    response = factories.browser(user).post(TOKENS, selected, follow=True)
    assert "Revoked." in response.text
    assert (status(text), status(another_text)) == (401, 200)
    row.refresh_from_db()
    first_time = row.revoked
    factories.browser(user).post(TOKENS, selected)
    row.refresh_from_db()
    assert row.revoked == first_time


def test_a_token_can_be_neither_changed_nor_deleted() -> None:
    user = factories.user(is_staff=True, is_superuser=True)
    row = make_token(user, "mine").row
    client = factories.browser(user)
    page = client.get(f"{TOKENS}{row.pk}/change/").text
    assert 'name="_save"' not in page
    assert client.post(f"{TOKENS}{row.pk}/change/", {"name": "other"}).status_code == 403
    client.post(TOKENS, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert ApiToken.objects.get().name == "mine"


def test_a_user_with_tokens_can_be_deleted_in_the_admin() -> None:
    user = maker()
    text = make_token(user, "mine").text
    clerk = factories.user(is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__in=["delete_user", "view_user"]))
    client = factories.browser(clerk)
    client.post(f"/admin/auth/user/{user.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(pk=user.pk).exists()
    assert status(text) == 401


@pytest.mark.django_db(databases=["default", "lite"])
def test_users_may_be_in_another_database(
    settings: Settings, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    settings.DATABASE_ROUTERS = ["tests.support.routers.UsersInLite"]
    user = factories.user(is_staff=True, is_superuser=True)
    assert user._state.db == "lite"
    text = text_in(made(user, user=str(user.pk)))
    made(user, user=str(user.pk))
    assert status(text) == 200
    page = factories.browser(user).get(TOKENS).text
    assert page.count(f'field-of_user">{user.username}<') == 2
    with (
        CaptureQueriesContext(connections["lite"]) as queries,
        django_capture_on_commit_callbacks(using="lite", execute=True),
    ):
        user.delete()
    # That database may lack the table.
    assert not any("readtrack_api_apitoken" in query["sql"] for query in queries)
    assert ApiToken.objects.count() == 0
    assert status(text) == 401


def test_a_later_user_with_the_key_of_a_deleted_one_does_not_get_the_tokens(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    user = editor()
    pk = user.pk
    text = make_token(user, "mine").text
    with django_capture_on_commit_callbacks(execute=True):
        User.objects.filter(pk=pk).delete()
    editor(pk=pk)
    assert status(text) == 401


def test_an_expired_token_is_refused() -> None:
    now = timezone.now()
    assert status(make_token(editor(), "past", expires=now).text) == 401
    assert status(make_token(editor(), "future", expires=now + timedelta(hours=1)).text) == 200


def test_a_token_of_an_inactive_user_is_refused() -> None:
    user = editor()
    text = make_token(user, "mine").text
    assert status(text) == 200
    User.objects.update(is_active=False)
    assert status(text) == 401


def test_a_user_model_may_have_no_field_that_says_who_is_active(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(users, "get_user_model", lambda: Category)
    account = factories.category()
    monkeypatch.setattr(Category, "is_active", True, raising=False)  # as AbstractBaseUser has it
    assert users.active_user(account.pk) == account
    monkeypatch.setattr(Category, "is_active", False)
    assert users.active_user(account.pk) is None


def test_the_permissions_are_those_that_the_user_has_now() -> None:
    user = editor()
    text = make_token(user, "mine").text
    headers = {"Authorization": f"Bearer {text}"}
    url = f"{API}refused?group=reason"
    assert Client().get(url, headers=headers).status_code == 200
    user.user_permissions.clear()
    assert Client().get(url, headers=headers).status_code == 403


def test_the_last_use_is_written_once_an_hour(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    text, row = make_token(editor(), "mine")
    headers = {"Authorization": f"Bearer {text}"}
    Client().get(API, headers=headers)
    row.refresh_from_db()
    first_use = row.last_used
    assert first_use is not None
    with django_assert_num_queries(2):  # the token and its user
        Client().get(API, headers=headers)
    ApiToken.objects.update(last_used=first_use - USE_NOTED_EVERY)
    Client().get(API, headers=headers)
    row.refresh_from_db()
    assert row.last_used is not None
    assert row.last_used >= first_use
