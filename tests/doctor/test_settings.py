"""The doctor says what the settings mean."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.doctor.conftest import found, levels

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("overrides", "level"),
    [({}, "ok"), ({"TIMEOUT": 3.0}, "warning"), ({"TIMEOUT": 0.5, "CIRCUIT": 0.1}, "warning")],
)
def test_time_outs_that_hold_pages_up_are_a_warning(settings: Settings, overrides: dict[str, Any], level: str) -> None:
    settings.READTRACK = overrides
    assert levels("timeouts") == [level]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({}, "A reload counts again after 1,800 s."),
        ({"WINDOW": 60, "WINDOW_STORE": "keys"}, "A reload counts again after 60 s."),
        (
            {"WINDOW_STORE": "compact", "WINDOW": 1000, "WINDOW_SLICES": 3},
            "A reload counts again after 1,000 s. Compact windows end up to 336 s late.",
        ),
    ],
)
def test_windows_are_told_with_how_late_they_end(settings: Settings, overrides: dict[str, Any], words: str) -> None:
    settings.READTRACK = overrides
    assert found("windows")[0][1:] == ("ok", words, "")
