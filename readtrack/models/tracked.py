"""`Tracked`, the abstract model that a site's own model extends, its fields, and a queryset for its
manager.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from typing import Any, ClassVar

from django.core.exceptions import FieldDoesNotExist
from django.db import models, transaction
from django.db.models import F, Model
from django.dispatch import Signal
from django.utils.translation import gettext_lazy as _

from readtrack.models.rows import past_caches

COUNTS = ("view_count", "visitor_count")

# Sent before the row of a model's own table is written. A receiver may return a function, which is
# called after the row is written and in the same transaction. (Outside a transaction of the site,
# Django sends post_save after the commit.)
row_saving = Signal()


@cache
def news_columns(model: type[Tracked]) -> dict[str, str]:
    """Returns the names of the fields in `news_fields`, and of the foreign keys in `news_for`, by
    column.

    A field that django-modeltranslation translates has a column for each language. Its own column
    is left out, because each save writes it in the language of the moment.
    """
    columns: dict[str, str] = {}
    for name in (*model.news_fields, *model.news_for):
        with suppress(FieldDoesNotExist):  # a system check reports it
            field: Any = model._meta.get_field(name)
            if field.concrete and not field.many_to_many:
                for column in _translations(field) or [field]:
                    columns[column.attname] = name
    return columns


def _translations(field: Any) -> list[Any]:
    """Returns the fields in which django-modeltranslation has the field's value by language."""
    fields = []
    for other_field in field.model._meta.concrete_fields:
        translated_field = getattr(other_field, "translated_field", None)
        if translated_field is not None and translated_field.name == field.name:
            fields.append(other_field)
    return fields


def every_row(model: type[Model], *, using: str | None) -> models.QuerySet[Any]:
    """Returns all rows of the model's table.

    No manager is asked, because it may hide rows, even the one that `base_manager_name` names.
    """
    return past_caches(models.QuerySet(model, using=using))


def stored_values(
    instance: Model, only: Collection[str] | None, *, using: str
) -> dict[str, Any] | None:
    """Returns what SQL stores in the news columns that a save is about to write, by column.

    `only` are the fields that the save writes, None for all. Returns None if there is no row.
    """
    columns = []
    for column, name in news_columns(type(instance)).items():
        is_saved = only is None or name in only or column in only
        if is_generated(instance, column) or (is_saved and column in instance.__dict__):
            columns.append(column)
    if not columns:
        return {}
    rows = every_row(type(instance), using=using).filter(pk=instance.pk)
    values: dict[str, Any] | None = rows.values(*columns).first()
    return values


def is_generated(instance: Model, column: str) -> bool:
    """Returns True for the column of a GeneratedField, whose value the database computes."""
    field: Any = type(instance)._meta.get_field(column)
    return bool(field.generated)


def generated_values(
    instance: Model, columns: Iterable[str], *, using: str | None
) -> dict[str, Any]:
    """Returns the values of those of the columns that the database has computed for a row that was
    just written, by column.

    They are read, because Django before 6.0 and some databases do not return them.
    """
    generated = [column for column in columns if is_generated(instance, column)]
    if not generated:
        return {}
    rows = every_row(type(instance), using=using).filter(pk=instance.pk)
    return dict(rows.values(*generated).first() or {})


def changed_fields(
    instance: Model, stored: Mapping[str, Any], *, generated: Mapping[str, Any] = {}
) -> set[str]:
    """Returns the names of the fields whose stored value differs from that of the instance, or from
    the one that the database has `generated`.
    """
    names = news_columns(type(instance))
    values = {**instance.__dict__, **generated}
    changed = set()
    for column, stored_value in stored.items():
        if _differ(stored_value, values.get(column)):
            changed.add(names[column])
    return changed


def _differ(stored_value: Any, value: Any) -> bool:
    """Returns True if a field's value differs from the stored one, also as text."""
    if stored_value == value:
        return False
    if stored_value is None or value is None:
        return True
    return str(stored_value) != str(value)  # a form's "5" for the key 5 is no change


class StoredCount(int):
    """A count that was read from a row, or written to one.

    If a new row is inserted with such a count, it is a copy of the other row, and starts at 0.
    """


# Its base is generic in the stubs only.
class CountField(models.PositiveBigIntegerField):  # type: ignore[type-arg]
    """The column of a count. Only the flush changes it: an UPDATE by `save()` sets it to itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"default": 0, "db_default": 0, "editable": False, **kwargs})

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Returns what a migration says of the field: a field of Django's own.

        So old migrations need no change when a site removes readtrack.
        """
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.PositiveBigIntegerField", list(args), dict(kwargs)

    def to_python(self, value: Any) -> Any:
        """Returns the value as a number. `full_clean()` asks for it before a copy is saved."""
        if isinstance(value, StoredCount):
            return value
        return super().to_python(value)

    def value_from_object(self, obj: models.Model) -> Any:
        """Returns the count as `dumpdata` writes it: an int, because YAML knows no StoredCount."""
        count = super().value_from_object(obj)
        if isinstance(count, StoredCount):
            return int(count)
        return count

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:  # noqa: FBT001 - Django's
        """Returns what `save()` writes: on an UPDATE the column itself, for a copy of a row 0."""
        if not add:
            return F(self.name)  # a stale instance cannot write an old count back
        # A copy of a row has the StoredCount of that row; a count that the site sets is an int, and
        # is written. A deferred count is in no attribute, and was stored.
        count = model_instance.__dict__.get(self.attname, StoredCount())
        is_new_row = model_instance._state.adding or model_instance.pk is None
        # A row of another model, such as a version that django-simple-history keeps, is no copy.
        is_copied = isinstance(count, StoredCount) and isinstance(model_instance, Tracked)
        # A row that is saved in another database is no new row: it keeps its key and its count.
        if is_new_row and is_copied:
            setattr(model_instance, self.attname, 0)
        return super().pre_save(model_instance, add)


class TrackedQuerySet(models.QuerySet[Any]):
    """A queryset that a site's model may use for its manager:
    `objects = TrackedQuerySet.as_manager()`. Tracked itself has no manager.
    """

    def most_viewed(self) -> TrackedQuerySet:
        """Returns the rows ordered by the stored count, most viewed first."""
        return self.order_by("-view_count", "-pk")


class Tracked(models.Model):
    """An abstract model whose views are counted: the posts, products or topics that pages show."""

    view_count = CountField(_("views"))
    visitor_count = CountField(_("unique visitors"))

    #: Foreign keys and many-to-many fields to the objects that news makes unread. Names of other
    #: fields are ignored.
    news_for: ClassVar[Sequence[str]] = ("category",)
    #: Fields whose change may be news: `is_news` gets those that changed.
    news_fields: ClassVar[Sequence[str]] = ()
    #: Foreign key to the author, who gets no dot for the news.
    news_author: ClassVar[str] = ""

    #: How unique visitors are counted: "hll", "set", "daily", "bitmap" or "none"; "" is the site's
    #: setting.
    unique_strategy: ClassVar[str] = ""

    class Meta:
        abstract = True

    @classmethod
    def from_db(
        cls, db: str | None, *args: Any, **kwargs: Any
    ) -> Any:  # Self, which Python 3.10 lacks
        instance = super().from_db(db, *args, **kwargs)
        # Done here and not by a function, because a list may have thousands of rows.
        loaded = instance.__dict__
        for name in COUNTS:
            if name in loaded:
                loaded[name] = StoredCount(loaded[name])
        return instance

    def _save_table(
        self,
        raw: bool = False,  # noqa: FBT001, FBT002 - Django's signature
        cls: type[Model] | None = None,
        force_insert: bool = False,  # noqa: FBT001, FBT002
        force_update: bool = False,  # noqa: FBT001, FBT002
        using: str | None = None,
        update_fields: Collection[str] | None = None,
    ) -> bool:
        table: Any = super()
        has_counts = self._meta.get_field("view_count").model is cls
        if raw and has_counts:
            _raise_to_stored_counts(self, using=using)
        functions: list[Any] = []  # to be called in one transaction with the save
        if not raw and cls is self._meta.concrete_model:
            functions = _announce_save(
                self, force_insert=force_insert, using=using, update_fields=update_fields
            )
        in_transaction: AbstractContextManager[Any] = nullcontext()
        if functions:
            # Not around the whole of save(), because receivers of post_save may rely on it that the
            # row is committed.
            in_transaction = transaction.atomic(using=using, savepoint=False)
        with in_transaction:
            updated = bool(
                table._save_table(raw, cls, force_insert, force_update, using, update_fields)
            )
            if has_counts:
                _mark_counts_as_stored(self)
            for function in functions:
                # Django sets it a moment later. A function may need it to follow relations.
                self._state.db = using
                function(created=not updated)
        return updated

    def is_news(self, *, created: bool, changed: Set[str]) -> bool:
        """Returns True if a save is news.

        `changed` has the names of those fields in `news_fields` and `news_for` that the save has
        changed.
        """
        return created or bool(changed)


# Functions and not methods of Tracked, because a site's model may have methods of any name.


def _announce_save(instance: Tracked, **options: Any) -> list[Any]:
    """Sends `row_saving`. Returns the functions that are to be called after the row is written."""
    answers = row_saving.send(type(instance), instance=instance, **options)
    return [function for _receiver, function in answers if function]


def _raise_to_stored_counts(instance: Tracked, *, using: str | None) -> None:
    """Raises the counts of an instance from a fixture to those of its row, because the fixture may
    be older.
    """
    rows = every_row(type(instance), using=using).filter(pk=instance.pk)
    stored = rows.values(*COUNTS).first() or {}
    for name, count in stored.items():
        setattr(instance, name, max(count, getattr(instance, name)))


def _mark_counts_as_stored(instance: Tracked) -> None:
    """Turns the counts of an instance that was just saved into StoredCount."""
    for name in COUNTS:
        count = instance.__dict__.get(name)
        if type(count) is int:
            instance.__dict__[name] = StoredCount(count)
