"""The tables of imports: how far each has come, and which lines of logs have counted."""

from django.db import models
from django.utils import timezone

from readtrack import parts
from readtrack.models.fields import ExactCharField
from readtrack.models.rows import OwnRow

parts.require("readtrack.imports")


class Import(OwnRow):
    """The progress of the import of one log or table."""

    # The name by which Redis knows the import. Not the primary key, because a restored database
    # could give the same key to another import.
    source = models.CharField(max_length=64, unique=True)
    name = ExactCharField(max_length=255)
    first_line = models.CharField(max_length=32, blank=True, db_index=True)  # its digest
    digest = models.CharField(max_length=32, blank=True)  # of everything up to the position
    # Everything before this position is in SQL's counts.
    position = models.PositiveBigIntegerField(default=0)
    # What is between the position and this one is the present batch, and may be in SQL's counts.
    intended = models.PositiveBigIntegerField(default=0)
    part = models.TextField(blank=True)  # the present batch as JSON, see ledger.py
    # First and last time of its lines (s since 1970); 0 without any line.
    since = models.PositiveBigIntegerField(default=0)
    until = models.PositiveBigIntegerField(default=0)
    # The times outside which it left lines out, as the command had them; "" if it left none out.
    times = models.CharField(max_length=80, blank=True)
    started = models.DateTimeField(default=timezone.now)
    # When it began to be taken back. Until that is done, it cannot go on.
    undone_since = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.name)


class ImportedLines(OwnRow):
    """The lines of a batch that counted, so that a log that is judged again counts no line
    twice.
    """

    record = models.ForeignKey(Import, on_delete=models.CASCADE)
    position = models.PositiveBigIntegerField()  # where the batch ends
    # Their ranges in bytes of the log, as JSON: start and end of each, as distances from the number
    # before it.
    ranges = models.TextField()
    redis_time = models.BigIntegerField()  # when they were added (µs)

    class Meta:
        default_permissions = ()
        unique_together = [("record", "position")]

    def __str__(self) -> str:
        return f"{self.record_id} {self.position}"


class ImportedViews(OwnRow):
    """What a batch has added, so that it can be taken back."""

    record = models.ForeignKey(Import, on_delete=models.CASCADE)
    position = models.PositiveBigIntegerField()  # where the batch ends
    redis_time = models.BigIntegerField()  # when it was added (µs)
    views = models.BinaryField()  # compressed, see undo.py
    is_in_history = models.BooleanField()  # history has the views, too
    is_announced = models.BooleanField(default=False)  # Redis was told that it is taken back

    class Meta:
        default_permissions = ()
        unique_together = [("record", "position")]

    def __str__(self) -> str:
        return f"{self.record_id} {self.position}"
