"""The abstract `Tracked` that a site's own model extends, and the app's record of its flushes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

# The type stubs make it generic, Django does not.
if TYPE_CHECKING:
    _PositiveBigIntegerField = models.PositiveBigIntegerField[Any, Any]
else:
    _PositiveBigIntegerField = models.PositiveBigIntegerField


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

    # Foreign keys whose targets a new row makes unread. A name that the model lacks is passed over.
    news_for: ClassVar[Sequence[str]] = ("category",)

    objects = TrackedQuerySet.as_manager()

    class Meta:
        abstract = True

    def is_news(self, *, created: bool) -> bool:
        """Whether saving this row makes its categories unread. Override it for drafts and the like."""
        return created


class FlushRun(models.Model):
    """One flush: when it ran and what it did."""

    started = models.DateTimeField(_("started"))
    ended = models.DateTimeField(_("ended"), null=True)
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
