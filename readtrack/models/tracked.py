"""`Tracked`, the abstract model that a site's own model extends, and its fields and manager."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.db.models import F, Model
from django.utils.translation import gettext_lazy as _

KNOWN = "_readtrack_known"


def field_values(instance: Any, only: Collection[str] | None = None) -> dict[str, Any]:
    """Returns the instance's values of its `news_fields`, without deferred ones; with `only`, of those fields alone."""
    values = {}
    for name in instance.news_fields:
        column = instance._meta.get_field(name).attname
        if column in instance.__dict__ and (only is None or name in only or column in only):
            values[name] = instance.__dict__[column]
    return values


def changed_fields(instance: Model, values: Mapping[str, Any]) -> set[str]:
    """Returns the names of the values that differ from those last known to be in the database."""
    known = instance.__dict__.get(KNOWN, {})
    return {name for name, value in values.items() if name not in known or known[name] != value}


def remember_fields(instance: Model, values: Mapping[str, Any]) -> None:
    """Notes the values as those in the database."""
    instance.__dict__[KNOWN] = {**instance.__dict__.get(KNOWN, {}), **values}


# The type stubs make it generic, Django does not.
if TYPE_CHECKING:
    from typing_extensions import Self

    _PositiveBigIntegerField = models.PositiveBigIntegerField[Any, Any]
else:
    _PositiveBigIntegerField = models.PositiveBigIntegerField


class CountField(_PositiveBigIntegerField):
    """The stored value of a count. Only the flush changes it: an UPDATE by `save()` sets it to itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs = {"default": 0, "db_default": 0, "editable": False, **kwargs}
        super().__init__(*args, **kwargs)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:  # noqa: FBT001 - Django's signature
        if add:
            return super().pre_save(model_instance, add)
        return F(self.name)  # a stale instance cannot write an old count back


class TrackedQuerySet(models.QuerySet[Any]):
    """The queryset of a `Tracked` model."""

    def most_viewed(self) -> TrackedQuerySet:
        """Returns the rows ordered by the stored count, most viewed first."""
        return self.order_by("-view_count", "-pk")


class Tracked(models.Model):
    """An abstract model whose views are counted: the posts, products or topics that pages show."""

    view_count = CountField(_("views"))
    visitor_count = CountField(_("unique visitors"))

    #: Foreign keys and many-to-many fields to the objects that news makes unread. Names the model lacks are ignored.
    news_for: ClassVar[Sequence[str]] = ("category",)
    #: Fields whose change may be news: `is_news` gets those that changed.
    news_fields: ClassVar[Sequence[str]] = ()
    #: Foreign key to the author, who gets no dot for the news.
    news_author: ClassVar[str] = ""

    #: How unique visitors are counted: "hll", "set", "daily" or "bitmap"; "" is the site's setting.
    unique_strategy: ClassVar[str] = ""
    #: True if a view enters the funnel, False if not; None is the site's setting.
    has_funnel: ClassVar[bool | None] = None

    objects = TrackedQuerySet.as_manager()

    class Meta:
        abstract = True

    @classmethod
    def from_db(cls, db: str | None, *args: Any, **kwargs: Any) -> Self:
        instance = super().from_db(db, *args, **kwargs)
        if cls.news_fields:
            remember_fields(instance, field_values(instance))
        return instance

    def refresh_from_db(
        self, using: str | None = None, fields: Iterable[str] | None = None, *args: Any, **kwargs: Any
    ) -> None:
        fields = None if fields is None else list(fields)
        super().refresh_from_db(using, fields, *args, **kwargs)
        # A deferred field is loaded this way too, and changes of other fields have to stay changes.
        remember_fields(self, field_values(self, fields))

    def is_news(self, *, created: bool, changed: Set[str]) -> bool:
        """Returns True if a save is news. `changed` names those of `news_fields` and `news_for` that it changed."""
        return created or bool(changed)
