"""The digest in the admin, as the mail shows it."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.support import digests, factories

pytestmark = pytest.mark.django_db
PREVIEW = "/admin/readtrack/dashboard/digest/"
DASHBOARD = "/admin/readtrack/dashboard/"


@pytest.fixture(autouse=True)
def _digest(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST}


def test_editors_see_that_of_the_site_and_authors_their_own() -> None:
    ann = digests.author(first_name="Ann", is_staff=True)
    digests.articles({"views": 7, "author": ann}, {"views": 4})
    page: Any = factories.browser(digests.editor()).get(PREVIEW)
    assert "Numbers of news.example.com" in page.content.decode()
    assert ">11<" in page.content.decode()
    page = factories.browser(ann).get(PREVIEW)
    assert "Numbers of Ann" in page.content.decode()
    assert ">7<" in page.content.decode()


def test_it_has_a_policy_of_its_own_for_its_inline_styles() -> None:
    digests.article(7)
    policy = factories.browser(digests.editor()).get(PREVIEW)["Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def test_the_dashboard_leads_to_it_only_on_a_site_with_digests(settings: Settings) -> None:
    browser = factories.browser(digests.editor())
    assert PREVIEW in browser.get(DASHBOARD).content.decode()
    staff = factories.browser(digests.author(is_staff=True))
    assert PREVIEW in staff.get(f"{DASHBOARD}author/").content.decode()
    settings.READTRACK = {}
    assert PREVIEW not in browser.get(DASHBOARD).content.decode()
    assert browser.get(PREVIEW).status_code == 404


def test_who_may_see_no_numbers_sees_none(settings: Settings) -> None:
    rule = "tests.digest.test_sending.rule"
    settings.READTRACK = {"DIGEST": digests.DIGEST, "VIEW_NUMBERS": rule}
    staff = factories.browser(digests.author(is_staff=True))
    assert staff.get(PREVIEW).status_code == 403
    assert factories.browser(digests.author()).get(PREVIEW).status_code == 302  # to sign in


def test_an_editor_without_an_address_can_see_it() -> None:
    digests.article(7)
    editor = digests.editor()
    type(editor).objects.update(email="")
    assert factories.browser(editor).get(PREVIEW).status_code == 200
