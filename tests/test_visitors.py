"""Who is one visitor and who are two; what is kept of them."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from pytest_django import Settings

from readtrack import visitors
from tests.factories import BROWSER


def identity(rf: Any, *, address: str = "192.0.2.1", agent: str = BROWSER) -> str:
    """What somebody without a cookie is told apart by."""
    found = visitors.visitor(rf.get("/", REMOTE_ADDR=address, headers={"User-Agent": agent}), None)
    return found.seen_as or found.id


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("", "unix:", True),
    ],
)
def test_an_address_is_a_household(rf: Any, one: str, other: str, is_same: bool) -> None:
    assert (identity(rf, address=one) == identity(rf, address=other)) == is_same


def test_two_browsers_at_one_address_are_two_visitors(rf: Any) -> None:
    assert identity(rf) != identity(rf, agent="Another/1.0")


def test_an_endless_agent_is_cut(rf: Any) -> None:
    assert identity(rf, agent="x" * 10_000) == identity(rf, agent="x" * 20_000)


def test_a_site_may_do_without_cookies(rf: Any, settings: Settings) -> None:
    settings.READTRACK = {"COOKIE": ""}
    request = rf.get("/", headers={"User-Agent": BROWSER})
    assert visitors.visitor(request, None).new_cookie == ""
    assert visitors.visitor(request, None) == visitors.visitor(request, None)


def test_a_user_is_the_same_visitor_anywhere_and_another_user_is_not(rf: Any) -> None:
    one, other = User(pk=1), User(pk=2)
    here, there = rf.get("/", REMOTE_ADDR="192.0.2.1"), rf.get("/", REMOTE_ADDR="192.0.2.2")
    assert visitors.visitor(here, one) == visitors.visitor(there, one)
    assert visitors.visitor(here, one) != visitors.visitor(here, other)


def test_nothing_personal_is_kept(rf: Any) -> None:
    request = rf.get("/", REMOTE_ADDR="192.0.2.1", headers={"User-Agent": BROWSER})
    for found in (visitors.visitor(request, None), visitors.visitor(request, User(pk=1234567))):
        assert "192.0" not in str(found[:2])
        assert "1234567" not in str(found[:2])


def test_signed_in_is_who_is_authenticated(rf: Any) -> None:
    request = rf.get("/")
    assert visitors.signed_in(request) is None
    request.user = AnonymousUser()
    assert visitors.signed_in(request) is None
    request.user = User(pk=1)
    assert visitors.signed_in(request) == request.user
