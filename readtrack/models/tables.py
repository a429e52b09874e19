"""The app's own models: the record of its flushes and imports, and what it keeps of subjects beside their rows."""

from datetime import datetime, timedelta

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from readtrack import buckets

SUBJECT_LENGTH = 200  # characters of a subject's name in these tables; see subjects.column()


class UnsentPublication(models.Model):
    """A category that has news which Redis was not there to hear of. Sent once it is back."""

    subject = models.TextField(editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.subject


class FlushRun(models.Model):
    """One flush: when it ran and what it did."""

    class Kind(models.TextChoices):
        """How much it looked at."""

        CHANGED = "changed", _("what changed")
        FULL = "full", _("everything")
        ARCHIVE = "archive", _("everything, sketches and breakdowns too")

    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.FULL)
    started = models.DateTimeField(_("started"))
    ended = models.DateTimeField(_("ended"), null=True)
    # Redis's own clock in microseconds, at the end or at least the start: tells a restored snapshot from a newer Redis.
    redis_time = models.BigIntegerField(default=0, editable=False)
    # The same, were Redis's clock set back: everything recorded before it is stored once this run ends well.
    flushed_until = models.BigIntegerField(default=0, editable=False)
    read = models.PositiveBigIntegerField(_("read"), default=0)
    written = models.PositiveBigIntegerField(_("written"), default=0)
    settled = models.PositiveBigIntegerField(_("settled"), default=0)
    lifted = models.PositiveBigIntegerField(_("lifted"), default=0)
    orphans = models.PositiveBigIntegerField(_("orphans"), default=0)
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
        """The start as aware UTC, with and without USE_TZ."""
        return buckets.now(self.started)

    @property
    def took(self) -> timedelta | None:
        """From start to end; None while it runs or when it was killed."""
        return self.ended - self.started if self.ended else None


class SubjectRow(models.Model):
    """A row of the app's own, for the flush to write and to read."""

    subject = models.CharField(max_length=SUBJECT_LENGTH)

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return self.subject


class Archive(SubjectRow):
    """What Redis held of one subject when it was archived: its sketch outlives a lost or an idle key."""

    subject = models.CharField(max_length=SUBJECT_LENGTH, primary_key=True)
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()
    sketch = models.BinaryField()
    hour = models.PositiveIntegerField()  # when its views were last seen to have changed


class Breakdown(SubjectRow):
    """One count out of the hashes of a subject: a funnel's stage, a dimension's value."""

    pk = models.CompositePrimaryKey("subject", "kind", "field")
    kind = models.CharField(max_length=40)
    field = models.CharField(max_length=100)
    count = models.PositiveBigIntegerField()


class History(SubjectRow):
    """The absolute counts at the end of an hour in which they changed. Views of a range are a difference of two.

    A subject is a row's subject, a model's label (`blog.post`) or, for the whole site, empty.
    """

    pk = models.CompositePrimaryKey("subject", "hour")
    hour = models.PositiveIntegerField()  # hours since 1970, UTC: half the size of a time, and alike on all databases
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()


class ReaderHistory(SubjectRow):
    """How many had read a category at the end of an hour in which that changed. It falls to 0 with each publication."""

    pk = models.CompositePrimaryKey("subject", "hour")
    hour = models.PositiveIntegerField()
    readers = models.PositiveIntegerField()


class Reset(SubjectRow):
    """A subject that was set to zero: an old snapshot of Redis that comes back must not bring its views back."""

    subject = models.CharField(max_length=SUBJECT_LENGTH, primary_key=True)
    redis_time = models.BigIntegerField()
    full_subject = models.TextField()


class KnownEpoch(models.Model):
    """One row: the newest epoch of Redis that SQL knows of (see epoch.py)."""

    epoch = models.BigIntegerField(default=0)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.epoch)


class Dashboard(FlushRun):
    """The dashboard's place in the admin: a name in the app list and a permission."""

    class Meta:
        proxy = True
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")
        default_permissions = ("view",)


class Import(models.Model):
    """One log or table whose views were taken over, and how far."""

    # Names the position in Redis. A primary key could be handed out again once this database was restored.
    source = models.CharField(max_length=64, unique=True)
    name = models.CharField(_("name"), max_length=255)
    log = models.CharField(_("log"), max_length=100, blank=True)
    first_line = models.CharField(max_length=32, blank=True, db_index=True)  # its digest
    digest = models.CharField(max_length=32, blank=True)  # of everything up to the position
    position = models.PositiveBigIntegerField(_("position"), default=0)  # what is before it is in SQL's counts
    intended = models.PositiveBigIntegerField(default=0)  # what is between the two may be
    part = models.TextField(blank=True, editable=False)  # what that adds to history, as JSON
    since = models.DateTimeField(_("since"), null=True)
    until = models.DateTimeField(_("until"), null=True)
    started = models.DateTimeField(_("started"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        get_latest_by = "started"
        ordering = ("-started",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name
