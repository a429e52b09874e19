"""Subjects: the names of objects in Redis and SQL, `blog.post:42`, and the models that have them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import ForeignKey, IntegerField, ManyToManyField, Model

from readtrack.conf import cached_setting, conf
from readtrack.models import SUBJECT_LENGTH, Tracked

AnyModel = TypeVar("AnyModel", bound=Model)


def subject_of(obj: Model) -> str:
    """Returns the subject of the object. Raises ValueError for an object that is not saved."""
    if (pk := obj.pk) is None:
        raise ValueError(f"{obj!r} has no primary key yet; save it before tracking it.")
    return subject_of_row(obj.__class__, pk)  # type() of a SimpleLazyObject is no model


def subject_of_row(model: type[Model], pk: Any) -> str:
    """Returns the subject of a row. Characters that could break a key or a glob are
    percent-encoded.
    """
    return f"{label_of(model)}:{pk if type(pk) is int else quote(str(pk), safe='')}"


def label_in(subject: str) -> str:
    """Returns the label of the subject's model: `blog.post` of `blog.post:42`."""
    return subject.partition(":")[0]


def listed(objs: Iterable[AnyModel]) -> Iterable[AnyModel]:
    """Returns the objects. Raises TypeError for a single object, because a loop would cost a round
    trip for each.
    """
    if isinstance(objs, Model):
        raise TypeError(
            f"This takes many objects at once: pass a list, [{type(objs).__name__.lower()}]."
        )
    return objs


def parse_subject(subject: str) -> tuple[type[Model], Any] | None:
    """Returns the model and primary key of the subject, or None if this site has no such model or
    key.
    """
    label, _, encoded = subject.partition(":")
    if model := model_with_label(label):
        with suppress(ValidationError):
            return model, model._meta.pk.to_python(unquote(encoded))
    return None


def rows_by_model(subjects: Iterable[str]) -> dict[type[Model], dict[Any, str]]:
    """Returns the subjects by primary key, for each counted model; subjects of other models are
    left out.
    """
    labels: defaultdict[str, list[str]] = defaultdict(list)
    for subject in subjects:
        labels[subject[: subject.find(":")]].append(subject)
    found: dict[type[Model], dict[Any, str]] = {}
    for label, named in labels.items():
        model = model_with_label(label)
        if model is None or not is_counted(model):
            continue
        pk: Any = model._meta.pk
        by_pk: dict[Any, str] = {}
        if isinstance(
            getattr(pk, "target_field", pk), IntegerField
        ):  # int() takes a tenth of parse_subject()
            with suppress(ValueError):
                by_pk = {int(subject[len(label) + 1 :]): subject for subject in named}
        if not by_pk:
            by_pk = {row[1]: subject for subject in named if (row := parse_subject(subject))}
        if by_pk:
            found[model] = by_pk
    return found


def subject_column(subject: str) -> str:
    """Returns the subject for a column of the app's own tables: the end of a long subject becomes a
    hash.
    """
    if len(subject) <= SUBJECT_LENGTH:
        return subject
    digest = blake2b(subject.encode(), digest_size=16).hexdigest()
    return f"{subject[: SUBJECT_LENGTH - len(digest) - 1]}~{digest}"


@lru_cache(maxsize=256)
def model_with_label(label: str) -> type[Model] | None:
    """Returns the model of this site with that label, or None."""
    with suppress(LookupError, ValueError):
        return apps.get_model(label)
    return None


@cached_setting(maxsize=None)
def label_of(model: type[Model]) -> str:
    """Returns the first part of the subjects of the model's rows: `blog.post`."""
    return owner(model)._meta.label_lower


def owner(model: type[Model]) -> type[Model]:
    """Returns the model that owns the counts or the read state; a proxy or a child shares its
    parent's.
    """
    table = _counting_model(model)
    if issubclass(table, Tracked):
        return table
    return next(
        (
            one
            for labels in _named()
            for one in with_parents(table)
            if one._meta.label_lower in labels
        ),
        table,
    )


@cached_setting()
def _named() -> tuple[set[str], set[str]]:
    """Returns the labels of the models whose views are counted by a setting, and of those with read
    state.
    """
    links = [field for model in apps.get_models() for field in news_links(model)]
    targets = {_counting_model(field.related_model)._meta.label_lower for field in links}
    return {*map(str.lower, conf.COUNTED_MODELS)}, {
        *targets,
        *map(str.lower, conf.READ_STATE_MODELS),
    }


def _counting_model(model: type[Model]) -> type[Model]:
    concrete = model._meta.concrete_model or model
    return (
        concrete._meta.get_field("view_count").model if issubclass(concrete, Tracked) else concrete
    )


def with_parents(model: type[Model]) -> Iterator[type[Model]]:
    """Yields the model, or that of a proxy, and each parent whose primary key it shares."""
    model = model._meta.concrete_model or model
    yield model
    pk: Any = model._meta.pk
    if pk.remote_field and pk.remote_field.parent_link:
        yield from with_parents(pk.related_model)


@cached_setting(maxsize=None)
def is_counted(model: type[Model]) -> bool:
    """Returns True for a model whose views are counted: it extends Tracked, or COUNTED_MODELS names
    it or a parent.
    """
    return issubclass(model, Tracked) or label_of(model) in _named()[0]


def counted_subject_of(obj: Any) -> str:
    """Returns the subject of an object with counts. Raises TypeError for any other, and ValueError
    if unsaved.
    """
    if problem := why_not_counted(obj.__class__):
        raise TypeError(problem)
    return subject_of(obj)


@cached_setting(maxsize=None)
def why_not_counted(model: type[Any]) -> str:
    """Returns the reason why objects of the class have no counts; "" for a counted model."""
    if not issubclass(model, Model):
        return f"{model.__name__} is no model, so it has no counts; pass the object that it wraps."
    if is_counted(model):
        return ""
    names = ", ".join(
        child.__name__
        for child in apps.get_models()
        if issubclass(child, model) and is_counted(child)
    )
    if names:
        return f"{model.__name__} has no counts, only its children have ({names}); pass the child's object."
    ways = "let it extend readtrack.models.Tracked, or name it in READTRACK['COUNTED_MODELS']"
    return f"{model.__name__} has no counts; {ways}."


@cached_setting(maxsize=None)
def counted_models() -> list[type[Model]]:
    """Returns the models of this site that own counts, in the order of INSTALLED_APPS."""
    return [model for model in apps.get_models() if is_counted(model) and owner(model) is model]


def tracked_models() -> list[type[Tracked]]:
    """Returns those of the counted models that have the columns of Tracked."""
    return [model for model in counted_models() if issubclass(model, Tracked)]


@cached_setting(maxsize=None)
def has_read_state(model: type[Model]) -> bool:
    """Returns True for a category: `news_for`, NEWS_FOR or READ_STATE_MODELS names it."""
    return label_of(model) in _named()[1]


def can_be_unread(obj: Model) -> bool:
    """Returns True for an object with read state, unless its `has_news` (a method or a value) says
    that it is empty.
    """
    if not has_read_state(obj.__class__):
        return False
    has_news = getattr(obj, "has_news", True)
    return bool(has_news() if callable(has_news) else has_news)


def category_subjects(objs: Iterable[Model]) -> list[str]:
    """Returns the subjects of the objects. Raises TypeError for one without read state, or for a
    single object.
    """
    objs = list(listed(objs))
    for obj in objs:
        if problem := why_no_read_state(obj.__class__):
            raise TypeError(problem)
    return list({obj: subject_of(obj) for obj in objs}.values())


def why_no_read_state(kind: type) -> str:
    """Returns the reason why objects of the class are never unread; "" for a model with read state."""
    if issubclass(kind, Model) and has_read_state(kind):
        return ""
    return f"{kind.__name__} has no read state; name it in READTRACK['READ_STATE_MODELS'] or in news_for."


def read_state_models() -> list[type[Model]]:
    """Returns the models of this site that own read state, in the order of INSTALLED_APPS."""
    return [model for model in apps.get_models() if has_read_state(model) and owner(model) is model]


def news_links(model: type[Model]) -> list[Any]:
    """Returns the foreign keys and many-to-many fields whose objects news of the model makes
    unread.
    """
    if issubclass(model, Tracked):
        names = model.news_for
    else:
        named: Mapping[str, Any] = {
            str(label).lower(): names for label, names in conf.NEWS_FOR.items()
        }
        own = (named.get(parent._meta.label_lower) for parent in with_parents(model))
        names = next(
            (names for names in own if isinstance(names, (list, tuple))), ()
        )  # a check reports other types
    fields = []
    for name in names:
        with suppress(FieldDoesNotExist):
            fields.append(model._meta.get_field(name))
    return [field for field in fields if isinstance(field, (ForeignKey, ManyToManyField))]


def author_of(obj: Model, *, of_counts: bool = False) -> str:
    """Returns the primary key of the object's author, or of that of its counts, as text; "" without
    one.
    """
    field = author_field(
        owner(obj.__class__) if of_counts else obj.__class__
    )  # a child shares its parent's numbers
    key = getattr(obj, field.attname) if field else None
    return "" if key is None else str(key)


def author_field(model: type[Model]) -> Any:
    """Returns the foreign key that the model's `news_author` names; None without one, or if it
    leads to no user.
    """
    field: Any = (
        model._meta.get_field(model.news_author)
        if issubclass(model, Tracked) and model.news_author
        else None
    )
    leads_to_users = (
        field and field.related_model is get_user_model() and field.target_field.primary_key
    )
    return field if leads_to_users else None


def enters_funnel(model: type[Model] | None) -> bool:
    """Returns True if a view of the model enters a funnel."""
    own = getattr(model, "has_funnel", None)
    return conf.FUNNELS if own is None else bool(own)


def check_stage(stage: str) -> None:
    """Raises ValueError for a stage that FUNNEL lacks."""
    if stage not in conf.FUNNEL:
        raise ValueError(
            f"READTRACK['FUNNEL'] has no stage {stage!r}; it has: {', '.join(conf.FUNNEL)}."
        )
