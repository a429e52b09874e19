"""What a flush does with the copies of positions, beside storing them."""

from readtrack.flush.steps import Steps
from readtrack.sql import databases
from readtrack.threads import read_times
from readtrack.threads.models import ReadTimes


class ThreadsSteps(Steps):
    """The steps of this part in a flush."""

    def archive_once(self) -> None:
        databases.retried(databases.of(ReadTimes), read_times.delete_old)
