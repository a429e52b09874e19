"""The visitor of a line in a log is that of the same browser on the site."""

import pytest
from django.test import RequestFactory
from django.utils import timezone

from readtrack.hits import visitors
from readtrack.imports.line import visitor_of

AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "x" * 2_000, "", "Zürich/1.0")


@pytest.mark.parametrize("agent", AGENTS, ids=["usual", "long", "none", "with an umlaut"])
@pytest.mark.parametrize("address", ["198.51.100.7", "2001:db8::7"])
def test_a_browser_without_a_cookie_has_one_id_in_logs_and_on_the_site(
    address: str, agent: str
) -> None:
    request = RequestFactory().get("/", REMOTE_ADDR=address, headers={"User-Agent": agent})
    logged = visitor_of(address, agent, at=timezone.now())
    assert logged.fallback_id == visitors.address_id(request)
