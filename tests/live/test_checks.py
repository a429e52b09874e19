"""A setting LIVE that cannot be used is found."""

from typing import Any

from pytest_django import Settings

from tests.checks.findings import found, the_message
from tests.support.rows import each_row


@each_row(
    ("setting", "part"),
    [
        ({}, ""),
        ({"events": ""}, ""),
        ({"events": "/events/"}, ""),
        ({"events": "events/"}, "'events' is 'events/'"),
        ({"events": "https://example.com/events/"}, "'events' is 'https://example.com/events/'"),
        ({"events": 5}, "'events' is 5"),
        ({"event": "/events/"}, "no key 'event'"),
    ],
)
def test_a_setting_that_is_no_path_of_the_site_is_found(
    settings: Settings, setting: dict[str, Any], part: str
) -> None:
    settings.READTRACK = {**settings.READTRACK, "LIVE": setting}
    assert ("readtrack.E095" in found()) == bool(part)
    if part:
        assert part in the_message("readtrack.E095").msg
