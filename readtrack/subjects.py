"""What is viewed or read, and its subject: `blog.post:42`, the id in every key."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import ForeignKey, IntegerField, ManyToManyField, Model

from readtrack.conf import cached_setting, conf
from readtrack.models import Tracked
from readtrack.models.tables import SUBJECT_LENGTH

AnyModel = TypeVar("AnyModel", bound=Model)


def subject_of(obj: Model) -> str:
    """The subject's name in keys. Bytes that could break a key or a glob are percent-encoded.

    Raises ValueError for an object that is not saved: it has no name yet.
    """
    if obj.pk is None:
        raise ValueError(f"{obj!r} has no primary key yet; save it before tracking it.")
    return subject_of_row(obj.__class__, obj.pk)  # by its type alone, one that is loaded lazily is no model


def subject_of_row(model: type[Model], pk: Any) -> str:
    """The subject of a model's row by its primary key."""
    return f"{label_of(model)}:{pk if type(pk) is int else quote(str(pk), safe='')}"


def subjects_of(objs: Iterable[AnyModel]) -> dict[AnyModel, str]:
    """The subject of each object. Raises as `several` and `subject` do."""
    return {obj: subject_of(obj) for obj in listed(objs)}


def listed(objs: Iterable[AnyModel]) -> Iterable[AnyModel]:
    """The objects as they are. Raises TypeError for one alone: who loops over a page must not ask for each."""
    if isinstance(objs, Model):
        raise TypeError(f"This takes many objects at once: pass a list, [{type(objs).__name__.lower()}].")
    return objs


def parse_subject(subject: str) -> tuple[type[Model], Any] | None:
    """The model and primary key that a subject names; None where this site has no such thing."""
    label, _, encoded = subject.partition(":")
    model = model_with_label(label)
    if model is None:
        return None
    try:
        return model, model._meta.pk.to_python(unquote(encoded))
    except ValidationError:
        return None


def rows_by_model(subjects: Iterable[str]) -> dict[type[Tracked], dict[Any, str]]:
    """The subjects by primary key, for each Tracked model; others are nothing SQL has a column for."""
    labels: defaultdict[str, list[str]] = defaultdict(list)
    for subject in subjects:
        labels[subject[: subject.find(":")]].append(subject)
    found = {}
    for label, named in labels.items():
        model = model_with_label(label)
        if model is not None and issubclass(model, Tracked):
            found[model] = _by_pk(label, named)
    return {model: by_pk for model, by_pk in found.items() if by_pk}


def _by_pk(label: str, named: list[str]) -> dict[Any, str]:
    # Whole numbers are what most sites have, and parsing takes ten times as long.
    if _has_number(label):
        start = len(label) + 1
        with suppress(ValueError):
            return {int(subject[start:]): subject for subject in named}
    parsed = ((parse_subject(subject), subject) for subject in named)
    return {found[1]: subject for found, subject in parsed if found}


@lru_cache(maxsize=256)
def _has_number(label: str) -> bool:
    pk: Any = apps.get_model(label)._meta.pk
    return isinstance(getattr(pk, "target_field", pk), IntegerField)


def subject_column(subject: str) -> str:
    """The subject in the app's own tables: as it is, unless it is too long for a column."""
    if len(subject) <= SUBJECT_LENGTH:
        return subject
    digest = blake2b(subject.encode(), digest_size=16).hexdigest()
    return f"{subject[: SUBJECT_LENGTH - len(digest) - 1]}~{digest}"


@lru_cache(maxsize=256)
def model_with_label(label: str) -> type[Model] | None:
    """The model of this site with that label; None where there is none."""
    try:
        return apps.get_model(label)
    except (LookupError, ValueError):
        return None


def owner(model: type[Model]) -> type[Model]:
    """The model whose table holds the counts, or that carries dots: proxies and children share their parent's."""
    concrete = model._meta.concrete_model or model
    if not issubclass(concrete, Tracked):
        return next((parent for parent in _line(concrete) if _carries_dots(parent)), concrete)
    return concrete._meta.get_field("view_count").model


def _line(model: type[Model]) -> Iterator[type[Model]]:
    """The model, and those of its parents whose primary key is its own."""
    yield model
    pk: Any = model._meta.pk
    if pk.remote_field and pk.remote_field.parent_link:
        yield from _line(pk.related_model)


def _carries_dots(model: type[Model]) -> bool:
    return model in _linked() or any(model._meta.label_lower == name.lower() for name in conf.READ_STATE_MODELS)


@cached_setting(maxsize=None)
def label_of(model: type[Model]) -> str:
    """What the subjects of the model's rows begin with: `blog.post`."""
    return owner(model)._meta.label_lower


def tracked_models() -> list[type[Tracked]]:
    """The models of this site that hold counts, in the order of INSTALLED_APPS."""
    return [model for model in apps.get_models() if issubclass(model, Tracked) and owner(model) is model]


def tracked_labels() -> list[str]:
    """What the subjects of their rows begin with."""
    return [label_of(model) for model in tracked_models()]


def enters_funnel(model: type[Model] | None) -> bool:
    """Whether a view of the model enters a funnel."""
    own = getattr(model, "has_funnel", None)
    return conf.FUNNELS if own is None else bool(own)


def check_stage(stage: str) -> None:
    """Raises ValueError for a stage that FUNNEL lacks."""
    if stage not in conf.FUNNEL:
        raise ValueError(f"READTRACK['FUNNEL'] has no stage {stage!r}; it has: {', '.join(conf.FUNNEL)}.")


def news_links(model: type[Tracked]) -> list[Any]:
    """The foreign keys and many-to-many fields among the model's `news_for`."""
    fields = []
    for name in model.news_for:
        try:
            field = model._meta.get_field(name)
        except FieldDoesNotExist:
            continue
        if isinstance(field, (ForeignKey, ManyToManyField)):
            fields.append(field)
    return fields


@cache
def _linked() -> frozenset[type[Model]]:
    """What the fields point at that `news_for` names."""
    links = [field for model in apps.get_models() if issubclass(model, Tracked) for field in news_links(model)]
    return frozenset(field.related_model._meta.concrete_model for field in links)
