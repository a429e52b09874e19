"""The abstract `Tracked` that a site's own model extends, and the app's record of its flushes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from readtrack import changes

# The type stubs make it generic, Django does not.
if TYPE_CHECKING:
    from typing_extensions import Self

    _PositiveBigIntegerField = models.PositiveBigIntegerField[Any, Any]
else:
    _PositiveBigIntegerField = models.PositiveBigIntegerField


SUBJECT_LENGTH = 200  # characters of a subject's name in the app's own tables; see subjects.column()


class CountField(_PositiveBigIntegerField):
    """A snapshot of a count. Only the flush moves it: an UPDATE by `save()` sets it to itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs = {"default": 0, "db_default": 0, "editable": False, **kwargs}
        super().__init__(*args, **kwargs)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:  # noqa: FBT001 - Django's signature
        if add:
            return super().pre_save(model_instance, add)
        return F(self.name)  # a stale instance cannot write an old count back


class TrackedQuerySet(models.QuerySet[Any]):
    """What a `Tracked` model's manager adds."""

    def most_viewed(self) -> TrackedQuerySet:
        """Ordered by the stored count, most viewed first."""
        return self.order_by("-view_count", "-pk")


class Tracked(models.Model):
    """A model whose views are counted. Its rows are posts, products, topics: what a page is about."""

    view_count = CountField(_("views"))
    visitor_count = CountField(_("unique visitors"))

    # Foreign keys and many-to-many fields whose targets news makes unread. A name that the model lacks is passed over.
    news_for: ClassVar[Sequence[str]] = ("category",)
    # Fields whose change may be news: `is_news` is told of those that changed.
    news_fields: ClassVar[Sequence[str]] = ()
    # Foreign key to the user who gets no dot for it.
    news_author: ClassVar[str] = ""

    # How unique visitors are counted: "hll", "set", "daily" or "bitmap"; "" is the site's setting.
    unique_strategy: ClassVar[str] = ""
    # Whether a view enters the funnel; None is the site's setting.
    has_funnel: ClassVar[bool | None] = None

    objects = TrackedQuerySet.as_manager()

    class Meta:
        abstract = True

    @classmethod
    def from_db(cls, db: str | None, *args: Any, **kwargs: Any) -> Self:
        instance = super().from_db(db, *args, **kwargs)
        if cls.news_fields:
            changes.remember(instance, changes.held(instance))
        return instance

    def refresh_from_db(
        self, using: str | None = None, fields: Iterable[str] | None = None, *args: Any, **kwargs: Any
    ) -> None:
        fields = None if fields is None else list(fields)
        super().refresh_from_db(using, fields, *args, **kwargs)
        # A deferred field is loaded this way too, alone: what was changed beside it stays a change.
        changes.remember(self, changes.held(self, fields))

    def is_news(self, *, created: bool, changed: Set[str]) -> bool:
        """Whether a save is news. `changed` names those of `news_fields` and `news_for` that it changed."""
        return created or bool(changed)


class UnsentNews(models.Model):
    """A category that has news which Redis was not there to hear of. Sent once it is back."""

    token = models.TextField(editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.token


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
    covers = models.BigIntegerField(default=0, editable=False)
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
    def took(self) -> timedelta | None:
        """From start to end; None while it runs or when it was killed."""
        return self.ended - self.started if self.ended else None


class Kept(models.Model):
    """A row of the app's own, for the flush to write and to read."""

    subject = models.CharField(max_length=SUBJECT_LENGTH)

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return self.subject


class Archive(Kept):
    """What Redis held of one subject when it was archived: its sketch outlives a lost or an idle key."""

    subject = models.CharField(max_length=SUBJECT_LENGTH, primary_key=True)
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()
    sketch = models.BinaryField()
    hour = models.PositiveIntegerField()  # when its views were last seen to have changed


class Breakdown(Kept):
    """One count out of the hashes of a subject: a funnel's stage, a dimension's value."""

    pk = models.CompositePrimaryKey("subject", "family", "field")
    family = models.CharField(max_length=40)
    field = models.CharField(max_length=100)
    count = models.PositiveBigIntegerField()


class History(Kept):
    """The absolute counts at the end of an hour in which they changed. Views of a range are a difference of two.

    A subject is a row's token, a model's label (`blog.post`) or, for the whole site, empty.
    """

    pk = models.CompositePrimaryKey("subject", "hour")
    hour = models.PositiveIntegerField()  # hours since 1970, UTC: half the size of a time, and alike on all databases
    views = models.PositiveBigIntegerField()
    visitors = models.PositiveBigIntegerField()


class Readership(Kept):
    """How many had read a category at the end of an hour in which that changed. It falls to 0 with each publication."""

    pk = models.CompositePrimaryKey("subject", "hour")
    hour = models.PositiveIntegerField()
    readers = models.PositiveIntegerField()


class Reset(Kept):
    """A subject that was set to zero: an old snapshot of Redis that comes back must not bring its views back."""

    subject = models.CharField(max_length=SUBJECT_LENGTH, primary_key=True)
    redis_time = models.BigIntegerField()
    token = models.TextField()


class Lineage(models.Model):
    """One row: the newest epoch of Redis that SQL knows of (see lineage.py)."""

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
    started = models.DateTimeField(_("started"), auto_now_add=True)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        get_latest_by = "started"
        ordering = ("-started",)
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name
