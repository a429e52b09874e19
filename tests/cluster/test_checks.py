"""The checks of CLUSTER: what is said of numbers that cannot work."""

from typing import Any

import pytest
from pytest_django import Settings

from readtrack.checks.setup import check_setup


@pytest.mark.one_server("checks settings without partitions, which a cluster refuses")
@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({}, []),
        ({"partitions": 1}, []),
        ({"partitions": 2}, ["readtrack.E042"]),
        ({"partitions": 1025}, ["readtrack.E042"]),
        ({"partitions": 1024, "flush_tasks": 8}, []),
        ({"partitions": 16, "flush_tasks": 17}, ["readtrack.E043"]),
        ({"partitions": 16, "flush_tasks": 0}, ["readtrack.E043"]),
        ({"flush_tasks": 2}, ["readtrack.E043"]),
        ({"partitions": "16"}, ["readtrack.E002"]),
        ({"parts": 16}, ["readtrack.W092"]),
    ],
    ids=str,
)
def test_numbers_that_cannot_work_are_refused(
    settings: Settings, options: dict[str, Any], ids: list[str]
) -> None:
    settings.READTRACK = {"CLUSTER": options}
    assert [message.id for message in check_setup(None)] == ids
