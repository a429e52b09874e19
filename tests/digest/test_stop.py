"""The page that stops the digest by one click, and takes that back."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.test.utils import override_settings
from django.utils.translation import override
from pytest_django import Settings

from readtrack.digest import links, records
from readtrack.digest.models import DigestReader
from readtrack.digest.sending import send_due
from tests.support import digests, factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _digest(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST}


@pytest.fixture
def client() -> Client:
    """Returns a browser that is not signed in, on a site that checks tokens of forms."""
    return factories.browser(enforce_csrf_checks=True)


def path_of(user: Any) -> str:
    path = links.stop_path(user)
    assert path.startswith("/readtrack/digest/")
    return path


def test_the_link_of_a_mail_shows_a_button_and_changes_nothing(client: Client) -> None:
    editor = digests.editor()
    digests.article(5)
    send_due(at=digests.monday_morning())
    found = re.search(rf"Stop these mails: {digests.SITE}(\S+)", str(mail.outbox[0].body))
    assert found is not None
    for method in (client.get, client.head):
        answer: Any = method(found[1])
        assert answer.status_code == 200
        assert not records.has_stopped(str(editor.pk))
    page = client.get(found[1]).content.decode()
    assert "Do you want no more mails with these numbers?" in page
    assert "Stop these mails" in page
    assert editor.email not in page
    assert editor.username not in page


@pytest.mark.parametrize("pk", ["a/b", "../x", "é?#", "1:2"])
def test_a_link_is_made_for_each_primary_key(
    client: Client, pk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_exists", bool)
    client.post(path_of(User(username="x", pk=pk)))
    assert records.has_stopped(pk)


def test_the_page_is_dark_where_the_reader_wants_it(client: Client) -> None:
    page = client.get(path_of(digests.editor())).text
    assert '<meta name="color-scheme" content="light dark">' in page


def test_the_button_stops_it_and_another_takes_that_back(client: Client) -> None:
    editor = digests.editor()
    page = client.post(path_of(editor)).content.decode()
    assert "You get no more mails with these numbers." in page
    assert records.has_stopped(str(editor.pk))
    assert 'name="start"' in page
    assert 'name="start"' in client.get(path_of(editor)).content.decode()
    page = client.post(path_of(editor), {"start": "yes"}).content.decode()
    assert "You get the mails with these numbers again." in page
    assert not records.has_stopped(str(editor.pk))
    assert 'name="start"' not in page


def test_a_mail_program_stops_it_with_one_click(client: Client) -> None:
    editor, other = digests.editor(), digests.editor()
    body = {"List-Unsubscribe": "One-Click"}
    for _ in range(2):
        assert client.post(path_of(editor), body).status_code == 200
    assert records.has_stopped(str(editor.pk))
    assert not records.has_stopped(str(other.pk))


def test_a_stop_keeps_when_the_last_digest_was(client: Client) -> None:
    editor = digests.editor()
    digests.article(5)
    send_due(at=digests.monday_morning())
    client.post(path_of(editor))
    client.post(path_of(editor), {"start": "yes"})
    mail.outbox.clear()
    send_due(at=digests.monday_morning(8))
    assert mail.outbox == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.replace("/digest/", "/digest/1"),
        lambda path: path[:-2] + "/",
        lambda path: path.partition(":")[0] + "/",
        lambda path: "/readtrack/digest/:/",
        lambda path: "/readtrack/digest/%00%ff\u2028/",
        lambda path: f"/readtrack/digest/{'x' * 5_000}/",
    ],
)
def test_any_other_link_is_refused_and_stores_nothing(damage: Any, client: Client) -> None:
    path = damage(path_of(digests.editor()))
    for method in (client.get, client.post):
        answer: Any = method(path)
        assert answer.status_code == 404
    assert not DigestReader.objects.exists()


def test_a_link_outlives_a_key_of_the_site_as_long_as_that_is_a_fallback(
    client: Client, settings: Settings
) -> None:
    path = path_of(digests.editor())
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "new"
    assert client.get(path).status_code == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert client.get(path).status_code == 404


def test_no_tenant_takes_the_link_of_another(client: Client, settings: Settings) -> None:
    path = path_of(digests.editor())
    settings.READTRACK = {"DIGEST": digests.DIGEST, "PREFIX": "other:"}
    assert client.get(path).status_code == 404


def test_the_page_is_no_ones_to_keep_or_to_embed(client: Client) -> None:
    answer = client.get(path_of(digests.editor()))
    assert "no-store" in answer["Cache-Control"]
    assert answer["Referrer-Policy"] == "no-referrer"
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert client.put(path_of(digests.editor())).status_code == 405


@override_settings(
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
    ]
)
def test_it_works_on_a_site_where_everything_else_needs_signing_in(client: Client) -> None:
    editor = digests.editor()
    assert client.get(path_of(editor)).status_code == 200
    assert client.post(path_of(editor)).status_code == 200
    assert records.has_stopped(str(editor.pk))


def test_it_is_in_the_language_of_the_page(client: Client) -> None:
    with override("ar"):
        page = client.get(path_of(digests.editor())).content.decode()
    assert '<html lang="ar" dir="rtl">' in page
    assert "Stop these mails" not in page


@pytest.mark.django_db(transaction=True)
def test_what_is_kept_of_a_digest_goes_with_its_user(client: Client) -> None:
    editor, other = digests.editor(), digests.editor()
    paths = [path_of(editor), path_of(other)]
    for path in paths:
        assert client.post(path).status_code == 200
    pk = editor.pk
    editor.delete()
    assert [row.user for row in DigestReader.objects.all()] == [str(other.pk)]
    for method in (client.get, client.post):
        answer: Any = method(paths[0])
        assert answer.status_code == 404
    assert [row.user for row in DigestReader.objects.all()] == [str(other.pk)]
    # Who gets that primary key later gets the digests as everybody does.
    assert not records.has_stopped(str(digests.editor(pk=pk).pk))
    User.objects.all().delete()
    assert not DigestReader.objects.exists()


def test_the_link_of_an_inactive_user_still_works(client: Client) -> None:
    editor = digests.editor(is_active=False)
    assert client.post(path_of(editor)).status_code == 200
    assert records.has_stopped(str(editor.pk))


def test_a_link_to_a_key_that_no_user_can_have_is_refused(client: Client) -> None:
    assert client.get(path_of(User(username="x", pk="a/b"))).status_code == 404
    assert client.get(path_of(User(username="x", pk=2**70))).status_code == 404
