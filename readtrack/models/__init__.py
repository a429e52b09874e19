"""The models: `Tracked`, which a site's own model extends, and the tables of the app."""

from datetime import date, datetime, timedelta
from uuid import uuid4

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from readtrack import buckets
from readtrack.models.tracked import CountField as CountField
from readtrack.models.tracked import Tracked as Tracked
from readtrack.models.tracked import TrackedQuerySet as TrackedQuerySet

if not apps.is_installed("readtrack"):
    raise ImproperlyConfigured(
        'readtrack is used, but not installed: add "readtrack" to INSTALLED_APPS.'
    )

SUBJECT_LENGTH = 200  # characters; see `subjects.subject_column`
KIND_LENGTH = 40  # characters of the kind of a hash, such as `views:country`


class SubjectRow(models.Model):
    """A row about one subject, which only the app writes and reads."""

    subject = models.CharField(max_length=SUBJECT_LENGTH)

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return self.subject


class UnsentPublication(SubjectRow):
    """A publication that Redis may not have. It is written with the post, and deleted once Redis
    has it.
    """

    # Made here, so that a row can be deleted without reading it first. Unlike a number of the
    # database it is never used again.
    token = models.UUIDField(primary_key=True, default=uuid4)
    subject = models.TextField()
    items = models.PositiveIntegerField(default=1)
    author = models.TextField(default="")  # primary key of the user who gets no dot
    is_own = models.BooleanField(default=False)
    written = models.DateTimeField(default=timezone.now)


class Rename(models.Model):
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


class FlushRun(models.Model):
    """The record of one flush."""

    class Kind(models.TextChoices):
        """What a flush reads and writes."""

        CHANGED = "changed", _("what changed")
        FULL = "full", _("everything")
        ARCHIVE = "archive", _("everything, sketches and breakdowns too")

    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.FULL)
    # "2/8": every eighth partition, from the second.
    part = models.CharField(max_length=10, default="", editable=False)
    started = models.DateTimeField(_("started"))
    ended = models.DateTimeField(_("ended"), null=True)
    # Redis's time at the end, or at least at the start (µs): tells a Redis that was restored from a
    # snapshot.
    redis_time = models.BigIntegerField(default=0, editable=False)
    # Redis's time at the start (µs): everything recorded before it is stored if this run ends well.
    flushed_until = models.BigIntegerField(default=0, editable=False)
    read = models.PositiveBigIntegerField(_("read"), default=0)
    written = models.PositiveBigIntegerField(_("written"), default=0)
    settled = models.PositiveBigIntegerField(_("settled"), default=0)
    lifted = models.PositiveBigIntegerField(_("lifted"), default=0)
    orphans = models.PositiveBigIntegerField(_("orphans"), default=0)
    locked = models.PositiveBigIntegerField(_("locked"), default=0)
    error = models.TextField(_("error"), blank=True)

    class Meta:
        verbose_name = _("flush")
        verbose_name_plural = _("flushes")
        get_latest_by = "started"
        ordering = ("-started",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.started:%Y-%m-%d %H:%M:%S}"

    @property
    def began(self) -> datetime:
        """Returns the start as aware UTC, with and without USE_TZ."""
        return buckets.now(self.started)

    @property
    def took(self) -> timedelta | None:
        """Returns the time from start to end; None while it runs or if it was killed."""
        return self.ended - self.started if self.ended else None


class Archive(SubjectRow):
    """The counts and the sketch of a subject, which outlive a key that Redis lost or removed as
    idle.
    """

    subject = models.CharField(max_length=SUBJECT_LENGTH, primary_key=True)
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()
    sketch = models.BinaryField()
    # Since 1970; the last hour in which a change of views was seen.
    hour = models.PositiveIntegerField()


class SubjectCount(SubjectRow):
    """The counts of a row whose own table has no columns for them: of a model that MODELS
    names.
    """

    subject = models.CharField(max_length=SUBJECT_LENGTH, primary_key=True)
    # Named as in Tracked, so that a query fits both.
    view_count = models.PositiveBigIntegerField(db_column="views")
    visitor_count = models.PositiveBigIntegerField(db_column="visitors")


class Breakdown(SubjectRow):
    """One count of a subject's hashes: a stage of the funnel, or a value of a dimension."""

    pk = models.CompositePrimaryKey("subject", "kind", "field")
    kind = models.CharField(max_length=KIND_LENGTH)
    field = models.CharField(max_length=100)
    count = models.PositiveBigIntegerField()


class History(SubjectRow):
    """The absolute counts at the end of an hour in which they changed. The views of a range are the
    difference of two rows.

    `subject` is that of an object, or the label of a model (`blog.post`). With `reads:` before it
    `views` are the reads of the object. Hour 0 holds what a subject had before its history began.
    """

    pk = models.CompositePrimaryKey("subject", "hour")
    # Since 1970, UTC: half the size of a time, and the same in all databases.
    hour = models.PositiveIntegerField()
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()


class Popular(SubjectRow):
    """One of the most viewed subjects of the last days (`days`), and its counts in them. Full
    flushes renew the rows.
    """

    pk = models.CompositePrimaryKey("subject", "days")
    days = models.PositiveSmallIntegerField()
    since = models.PositiveIntegerField()  # first of the hours (since 1970, UTC)
    until = models.PositiveIntegerField()  # exclusive
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()


class ReaderHistory(SubjectRow):
    """The number of readers of a category at the end of an hour in which it changed; a publication
    sets it to 0.
    """

    pk = models.CompositePrimaryKey("subject", "hour")
    hour = models.PositiveIntegerField()
    readers = models.PositiveIntegerField()


class BreakdownHistory(SubjectRow):
    """The gain of all objects of a model in an hour: of a value of a dimension, or of a stage of
    the funnel.

    `subject` is the label of the model. The rows of a range add up, unlike those of History.
    """

    pk = models.CompositePrimaryKey("subject", "kind", "hour", "field")
    kind = models.CharField(max_length=KIND_LENGTH)
    hour = models.PositiveIntegerField()
    field = models.CharField(max_length=100)
    count = models.PositiveBigIntegerField()


class Reset(SubjectRow):
    """A subject that was set to zero. If an old snapshot of Redis is restored, its views must not
    come back.
    """

    subject = models.CharField(max_length=SUBJECT_LENGTH, primary_key=True)
    redis_time = models.BigIntegerField()
    full_subject = models.TextField()


class KnownEpoch(models.Model):
    """The newest epoch that SQL knows of each list of unsettled counters that Redis ever began (see
    sql/runs.py).
    """

    pk = models.CompositePrimaryKey("tag", "origin")
    # Of the partition, because lists of two partitions may begin in the same µs.
    tag = models.CharField(max_length=10, default="", blank=True)
    origin = models.BigIntegerField()
    epoch = models.BigIntegerField(default=0)
    until = models.BigIntegerField(default=0)  # when the newest counter began that was settled (µs)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.epoch)


class Dashboard(FlushRun):
    """The dashboard's name in the admin's app list, and the permissions of the app's own."""

    class Meta:
        proxy = True
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")
        default_permissions = ()
        permissions = [
            ("view_numbers", "Can view the numbers of the site and of every object"),
            ("reset_counts", "Can reset the counts of objects that they may change"),
        ]


class Note(models.Model):
    """A note on the charts, such as "newsletter sent"."""

    # Of TIME_ZONE, which Django makes the process's.
    day = models.DateField(_("day"), default=date.today)
    text = models.CharField(_("text"), max_length=200)

    class Meta:
        verbose_name = _("note")
        verbose_name_plural = _("notes on the charts")
        ordering = ("day", "pk")

    def __str__(self) -> str:
        return self.text


class Import(models.Model):
    """The progress of the import of one log or table."""

    # Names the position in Redis. A primary key could be handed out again once this database was
    # restored.
    source = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=255)
    first_line = models.CharField(max_length=32, blank=True, db_index=True)  # its digest
    digest = models.CharField(max_length=32, blank=True)  # of everything up to the position
    position = models.PositiveBigIntegerField(default=0)  # what is before it is in SQL's counts
    intended = models.PositiveBigIntegerField(default=0)  # what is between the two may be
    part = models.TextField(blank=True)  # what that adds to history, as JSON
    # First and last time of its lines (s since 1970); 0 without any.
    since = models.PositiveBigIntegerField(default=0)
    until = models.PositiveBigIntegerField(default=0)
    started = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
