"""The table of read state that is kept by reader."""

from django.db import models
from django.utils import timezone

from readtrack import parts
from readtrack.models import SUBJECT_LENGTH
from readtrack.models.fields import ExactCharField
from readtrack.models.rows import OwnRow

parts.require("readtrack.threads")


class ReadTimes(OwnRow):
    """A copy of a key of positions, in case that Redis loses it: a thread's publications, or the
    times up to which a reader has read.
    """

    key = ExactCharField(max_length=SUBJECT_LENGTH, primary_key=True)
    name = models.TextField()  # of the key in Redis without the prefix; `key` is cut
    tag = models.CharField(max_length=10, default="", blank=True)  # of the partition
    times = models.BinaryField()  # µs by name, in JSON that is compressed by zlib
    stored = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
