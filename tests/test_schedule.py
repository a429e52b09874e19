"""The schedule for Celery beat."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from readtrack.schedule import readtrack_schedule
from readtrack.sql import runs
from tests.support.forks import Forks

SITE = """
from django.conf import settings
from readtrack.schedule import readtrack_schedule

print(sorted(readtrack_schedule({})), settings.configured)
"""


def test_a_tick_that_is_late_expires_before_the_next() -> None:
    schedule = readtrack_schedule()
    assert len(schedule) >= 2
    for entry in schedule.values():
        assert entry["options"]["expires"] <= entry["schedule"]


def test_digests_are_looked_for_only_on_a_site_that_has_them() -> None:
    assert "readtrack-digest" not in readtrack_schedule()
    schedule = readtrack_schedule({"DIGEST": {"site": "https://example.com"}})
    assert schedule["readtrack-digest"]["task"] == "readtrack.digest"
    assert schedule["readtrack-digest"]["schedule"] == 3600


@pytest.mark.parametrize("options", [{}, {"FLUSH_INTERVAL": 300}], ids=str)
def test_a_flush_is_late_after_three_ticks_of_the_schedule(
    options: dict[str, Any], settings: Settings
) -> None:
    settings.READTRACK = options
    entry = readtrack_schedule(options)["readtrack-flush-changed"]
    assert runs.late_after() == timedelta(seconds=3 * entry["schedule"])


def test_a_settings_module_may_make_it_before_there_are_settings(bare_forks: Forks) -> None:
    output = bare_forks.run(SITE).output
    assert "readtrack-flush-changed" in output
    assert output.endswith("False\n")
