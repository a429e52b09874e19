"""The models: `Tracked`, which a site's own model extends, and the tables of the app."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar, Literal
from uuid import uuid4

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from readtrack import buckets
from readtrack.models.fields import ExactCharField
from readtrack.models.rows import OwnRow
from readtrack.models.tracked import CountField as CountField
from readtrack.models.tracked import Tracked as Tracked
from readtrack.models.tracked import TrackedQuerySet as TrackedQuerySet

if not apps.is_installed("readtrack"):
    raise ImproperlyConfigured(
        'readtrack is used, but not installed: add "readtrack" to INSTALLED_APPS.'
    )

SUBJECT_LENGTH = 200  # characters; see `subjects.subject_column`


class SubjectRow(OwnRow):
    """The base of tables with rows about one subject, of the core and of parts.

    Each of them is found (sql/subject_tables.py). Its primary key is the subject, or has it as a
    part. The rows follow the new name of a model or of an object. If there is a row with the new
    name already, the one with the higher value stays: the value is the first field of the class
    that is not in the primary key.
    """

    # What the rows about a subject are deleted with: with its counts (by a reset, too), with its
    # read state, or with neither.
    kept_with: ClassVar[Literal["counts", "read state", "nothing"]] = "counts"
    # Rows may have a subject under several names: with the prefix "reads" also as
    # `reads:blog.post:42`.
    prefixes: ClassVar[Sequence[str]] = ()

    subject = ExactCharField(max_length=SUBJECT_LENGTH)

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.subject)


class PendingPublication(OwnRow):
    """A publication that SQL's copy of the read state may not have. It is written in the
    transaction of the post, sent to Redis on commit, and deleted once SQL has a later copy of the
    category.
    """

    # Made by Python and not by the database, so that a row can be deleted without reading it first.
    # It is never used again for another publication.
    token = models.UUIDField(primary_key=True, default=uuid4)
    subject = models.TextField()
    items = models.PositiveIntegerField(default=1)
    author = models.TextField(default="")  # primary key of the user who gets no dot
    is_own = models.BooleanField(default=False)  # the category is the author's own text
    post = models.TextField(default="")  # subject of what is new; "" for several, or unknown
    written = models.DateTimeField(default=timezone.now)
    # Redis's time of the publication (µs); None if Redis may not have it.
    sent = models.BigIntegerField(null=True)

    # Subjects of the objects that the category is within, if they are known without a query. No
    # column, because it may have moved before a row is sent.
    within: Sequence[str] | None = None

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.subject


class Rename(OwnRow):
    """The new name of a model (`blog.post`) or of an object (`blog.post:42`).

    SQL has followed it when the row is written; Redis has, once it `is_done`.
    """

    before = models.TextField()
    after = models.TextField()
    at = models.DateTimeField(default=timezone.now)
    is_done = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.before} > {self.after}"


class FlushRun(OwnRow):
    """The record of one flush."""

    class Kind(models.TextChoices):
        """What a flush writes."""

        CHANGED = "changed", _("what changed")
        FULL = "full", _("everything")
        ARCHIVE = "archive", _("everything, sketches and breakdowns too")

    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.FULL)
    # "2/8": every eighth partition, from the second.
    share = models.CharField(max_length=10, default="", editable=False)
    started = models.DateTimeField(_("started"))
    ended = models.DateTimeField(_("ended"), null=True)
    # Redis's time (µs) at the end of the flush, or at its start until then. Redis notes it, too: if
    # Redis has an earlier one, it was restored from an older snapshot.
    redis_time = models.BigIntegerField(default=0, editable=False)
    # Redis's time (µs) at the start. If the flush ends well, SQL has all views from before it.
    flushed_until = models.BigIntegerField(default=0, editable=False)
    # Numbers of totals.
    read = models.PositiveBigIntegerField(_("read"), default=0)
    written = models.PositiveBigIntegerField(_("written"), default=0)
    settled = models.PositiveBigIntegerField(_("settled"), default=0)
    lifted = models.PositiveBigIntegerField(_("lifted"), default=0)
    orphans = models.PositiveBigIntegerField(_("orphans"), default=0)
    locked = models.PositiveBigIntegerField(_("locked"), default=0)
    # Rows, and models as a whole, that could not be read or written. The others are stored.
    failed = models.PositiveBigIntegerField(_("failed"), default=0)
    faults = models.TextField(_("not stored"), blank=True)  # a line for each model and error
    error = models.TextField(_("error"), blank=True)

    class Meta:
        verbose_name = _("flush")
        verbose_name_plural = _("flushes")
        get_latest_by = "started"
        ordering = ("-started",)
        default_permissions = ("view",)
        permissions = [  # of the whole app
            ("view_numbers", "Can view the numbers of the site and of every object"),
            ("reset_counts", "Can reset the counts of objects that they may change"),
            ("view_readers", "Can view which users have read what"),
        ]

    def __str__(self) -> str:
        return f"{self.started:%Y-%m-%d %H:%M:%S}"

    @property
    def began(self) -> datetime:
        """Returns the start as aware UTC, also on a site without USE_TZ."""
        return buckets.now(self.started)

    @property
    def took(self) -> timedelta | None:
        """Returns the time from start to end. None while the flush runs, or if it was killed."""
        if self.ended is None:
            return None
        return self.ended - self.started


class Archive(SubjectRow):
    """The counts and the sketch of a subject, in case that Redis loses its keys or removes them
    because the subject is idle.
    """

    subject = ExactCharField(max_length=SUBJECT_LENGTH, primary_key=True)
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()
    sketch = models.BinaryField()
    # The last hour (since 1970) in which a flush saw that the views had changed.
    hour = models.PositiveIntegerField()


class SubjectCount(SubjectRow):
    """The counts of an object whose own table has no columns for them, because its model is counted
    by MODELS and does not extend Tracked.
    """

    subject = ExactCharField(max_length=SUBJECT_LENGTH, primary_key=True)
    # Named as in Tracked, so that the same queries work for both.
    view_count = models.PositiveBigIntegerField(db_column="views")
    visitor_count = models.PositiveBigIntegerField(db_column="visitors")


class ReadState(SubjectRow):
    """A copy of the read state of a category, in case that Redis loses it."""

    kept_with = "read state"

    subject = ExactCharField(max_length=SUBJECT_LENGTH, primary_key=True)
    published = models.BigIntegerField(default=0)  # when something was last published (µs)
    full_subject = models.TextField()  # `subject` is cut, see `subjects.subject_column`
    # Which form it is, and what the numbers of its readers are, see `copies.family_of`.
    family = models.CharField(max_length=20)
    tag = models.CharField(max_length=10, default="", blank=True)  # of the partition
    state = models.BinaryField()  # compressed by zlib


class ReaderNumber(OwnRow):
    """The ordinal of a reader in a partition, which is the reader's number in read state."""

    pk = models.CompositePrimaryKey("tag", "name")
    tag = models.CharField(max_length=10, default="", blank=True)  # of the partition
    name = ExactCharField(max_length=64)  # a keyed hash of the user's primary key
    number = models.PositiveBigIntegerField()

    class Meta:
        default_permissions = ()
        # Not unique: of two readers with one number the flush has to see both.
        indexes = (models.Index(fields=["tag", "number"], name="readtrack_reader_number"),)

    def __str__(self) -> str:
        return str(self.number)


class Reset(SubjectRow):
    """A subject that was set to zero, or whose row was deleted. Its earlier views must not come
    back, even if Redis was gone then, or is restored from an older snapshot.
    """

    kept_with = "nothing"

    subject = ExactCharField(max_length=SUBJECT_LENGTH, primary_key=True)
    # Of the reset or the deletion (µs). Each flush asks for the latest.
    redis_time = models.BigIntegerField(db_index=True)
    full_subject = models.TextField()  # `subject` is cut, see `subjects.subject_column`
    is_deletion = models.BooleanField(default=False)


class KnownEpoch(OwnRow):
    """The newest epoch that SQL knows of a list of unsettled counters in Redis (see sql/epochs.py).

    There is a row for each list that Redis ever began, and one that writers of history lock.
    """

    pk = models.CompositePrimaryKey("tag", "origin")
    tag = models.CharField(max_length=10, default="", blank=True)  # of the partition
    origin = models.BigIntegerField()  # the name of the list
    epoch = models.BigIntegerField(default=0)
    until = models.BigIntegerField(default=0)  # when the newest counter began that was settled (µs)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.epoch)
