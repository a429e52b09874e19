"""Checks of the setting SCRIPT, and of what the page's script needs."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.checks.findings import found, the_message

OURS = "readtrack.middleware.ReadTrackMiddleware"


@pytest.mark.parametrize(
    ("name", "is_good"), [("page.js", True), ("a/b-c.js", True), ("", False), ("/page.js", False)]
)
def test_the_scripts_name_has_to_fit_into_an_address(
    settings: Settings, name: str, is_good: bool
) -> None:
    settings.READTRACK = {"SCRIPT": {"name": name}}
    assert found() == ([] if is_good else ["readtrack.E027"])


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"shared_paths": ["("]}, "no regular expression"),
        ({"shared_paths": "^/news/"}, "no list"),
        ({"count_by": "both"}, "not 'either' or 'server' or 'script'"),
        ({"reads": "seen"}, "not 'shown' or 'read'"),
        ({"age": 1}, "no key 'age'"),
    ],
)
def test_what_cannot_be_used_is_named(
    settings: Settings, given: dict[str, Any], problem: str
) -> None:
    settings.READTRACK = {"SCRIPT": given}
    assert problem in the_message("readtrack.E027").msg


@pytest.mark.parametrize(
    "theirs",
    ["django.middleware.csp.ContentSecurityPolicyMiddleware", "csp.middleware.CSPMiddleware"],
)
def test_a_policy_that_is_made_before_the_page_is_filled_in_is_found(
    settings: Settings, theirs: str
) -> None:
    order = list(settings.MIDDLEWARE)
    settings.MIDDLEWARE = [*order, theirs]
    assert the_message("readtrack.W051").hint == f"Move '{theirs}' above '{OURS}' in MIDDLEWARE."
    settings.MIDDLEWARE = [theirs, *order]
    assert found() == []
