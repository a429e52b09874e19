"""The schedule for Celery beat."""

from readtrack.schedule import readtrack_schedule


def test_a_tick_that_is_late_expires_before_the_next() -> None:
    assert len(readtrack_schedule) >= 2
    for entry in readtrack_schedule.values():
        assert entry["options"]["expires"] <= entry["schedule"]
