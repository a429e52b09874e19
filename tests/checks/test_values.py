"""A setting that cannot be used is named."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.checks.findings import found


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"FLUSH_CHUNK": 0}, ["readtrack.E014"]),
        ({"WINDOW_SLICES": 0, "WINDOW_SHARDS": 0}, ["readtrack.E014", "readtrack.E014"]),
        ({"WINDOW": 0, "RATE_WINDOW": 0}, []),
        ({"RATE_LIMIT": 0, "UNIQUE_DAYS": 0}, []),
        ({"WINDOW_STORE": "disk"}, ["readtrack.E002"]),
        ({"WINDOW_STORE": "compact"}, []),
        ({"FUNNEL": []}, ["readtrack.E032"]),
        ({"FUNNEL": ["view", "click", "view"]}, ["readtrack.E032"]),
        ({"FUNNEL": ["view"]}, []),
        ({"DIMENSIONS": ["shoe"]}, ["readtrack.E033"]),
        ({"DIMENSIONS": ["device", "tests.hits.test_dimensions.plan"]}, []),
        ({"DIMENSIONS": ["os", "os"]}, ["readtrack.E033", "readtrack.E033"]),
        ({"DIMENSIONS": ["tests.hits.test_dimensions.UNCALLABLE"]}, ["readtrack.E033"]),
        ({"ANONYMOUS_READERS": True, "READERS": "id"}, ["readtrack.E040"]),
        ({"READERS": "ordinal"}, []),
        ({"READ_QUERYSET": "tests.nothing.here"}, ["readtrack.E041"]),
        ({"READ_QUERYSET": "tests.views.test_unread.UNREAD"}, ["readtrack.E041"]),
        ({"READ_QUERYSET": "tests.views.test_unread.own"}, []),
    ],
    ids=str,
)
def test_a_wrong_setting_is_found(settings: Settings, options: dict[str, Any], ids: list[str]) -> None:
    settings.READTRACK = options
    assert found() == ids
