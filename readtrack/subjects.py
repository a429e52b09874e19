"""Subjects: the names of objects in Redis and SQL (`blog.post:42`), and the objects' models."""

from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import ForeignKey, IntegerField, ManyToManyField, Model
from django.utils.module_loading import import_string

from readtrack import parts
from readtrack.conf import cached_setting, says_true
from readtrack.models import SUBJECT_LENGTH, Tracked
from readtrack.registry import registry

AnyModel = TypeVar("AnyModel", bound=Model)

# What fields, of the site's own too, raise for a value that they do not take.
NO_VALUE = (ValidationError, ValueError, TypeError, ArithmeticError, LookupError, AttributeError)


def subject_of(obj: Model) -> str:
    """Returns the subject of the object. Raises ValueError for an object that is not saved."""
    subject = subject_if_saved(obj)
    if not subject:
        raise ValueError(f"{obj!r} has no primary key yet; save it before tracking it.")
    return subject


def subject_if_saved(obj: Model) -> str:
    """Returns the subject of the object; "" for an object that is not saved."""
    pk = obj.pk
    if pk is None:
        return ""
    # type() of a SimpleLazyObject is no model.
    return subject_in(label_of(obj.__class__), pk)


def why_not_saved(obj: Model) -> str:
    """Returns the reason why the object has no subject; "" for one that has a primary key."""
    if obj.pk is not None:
        return ""
    return f"this {obj.__class__.__name__} has no primary key yet; save it before."


def subject_of_row(model: type[Model], pk: Any) -> str:
    """Returns the subject of the row of the model with the primary key `pk`.

    Characters that could break a key or a glob are percent-encoded.
    """
    return subject_in(label_of(model), pk)


def subject_in(label: str, pk: Any) -> str:
    """Returns the subject of the object with the primary key `pk`, of the model `label`."""
    if type(pk) is int:
        return f"{label}:{pk}"
    return f"{label}:{quote(_text_of(pk), safe='')}"


def _text_of(pk: Any) -> str:
    """Returns the key as text that its field's `to_python` reads."""
    if isinstance(pk, (bytes, memoryview)):
        return b64encode(pk).decode()  # as BinaryField does it
    return str(pk)


def label_in(subject: str) -> str:
    """Returns the label of the subject's model: `blog.post` of `blog.post:42`."""
    return subject.partition(":")[0]


def key_in(subject: str) -> str:
    """Returns the primary key of the subject's object, as text: `42` of `blog.post:42`."""
    return subject.partition(":")[2]


def listed(objs: Iterable[AnyModel]) -> Iterable[AnyModel]:
    """Returns the objects as they are. Raises TypeError for a single object.

    A site that passed single objects in a loop would make a round trip for each.
    """
    if isinstance(objs, Model):
        raise TypeError(
            f"This takes many objects at once: pass a list, [{type(objs).__name__.lower()}]."
        )
    return objs


def parse_subject(subject: str) -> tuple[type[Model], Any] | None:
    """Returns the model and primary key of the subject; None if no row of this site can have it."""
    label, _, encoded = subject.partition(":")
    model = model_with_label(label)
    if model is None:
        return None
    with suppress(*NO_VALUE):
        pk = model._meta.pk.to_python(unquote(encoded))
        if isinstance(pk, memoryview):
            pk = bytes(pk)
        hash(pk)  # raises for a value that is no key of one row
        return model, pk
    return None


def may_be_key(model: Any, pk: Any) -> bool:
    """Returns True if the value may be a primary key of the model.

    Whole numbers of more than 64 bits may not, because databases fail at them.
    """
    try:
        key = model._meta.pk.to_python(pk)
    except ValidationError:
        return False
    if isinstance(key, int):
        return abs(key) < 2**63
    return "\0" not in str(key)


def subjects_by_model(subjects: Iterable[str]) -> dict[type[Model], dict[Any, str]]:
    """Returns the subjects by counted model, then by primary key.

    Subjects of other models, and those that no row can have, are left out.
    """
    subjects_by_label: defaultdict[str, list[str]] = defaultdict(list)
    for subject in subjects:
        subjects_by_label[subject[: subject.find(":")]].append(subject)
    rows: dict[type[Model], dict[Any, str]] = {}
    for label, subjects_of_model in subjects_by_label.items():
        model = model_with_label(label)
        if model is None or not is_counted(model):
            continue
        subjects_by_pk: dict[Any, str] = {}
        pk: Any = model._meta.pk
        if isinstance(getattr(pk, "target_field", pk), IntegerField):
            # int() takes a tenth of the time of parse_subject(), but fails if a key is no number.
            start = len(label) + 1
            with suppress(ValueError):
                subjects_by_pk = {int(subject[start:]): subject for subject in subjects_of_model}
        if not subjects_by_pk:
            subjects_by_pk = _by_pk(subjects_of_model)
        if subjects_by_pk:
            rows[model] = subjects_by_pk
    return rows


def _by_pk(subjects: Iterable[str]) -> dict[Any, str]:
    """Returns the subjects by primary key, without those that no row can have."""
    subjects_by_pk: dict[Any, str] = {}
    for subject in subjects:
        model_and_pk = parse_subject(subject)
        if model_and_pk is not None:
            _, pk = model_and_pk
            subjects_by_pk[pk] = subject
    return subjects_by_pk


def subject_column(subject: str) -> str:
    """Returns the subject as the tables of readtrack store it.

    The end of a subject that is too long for the column is replaced by a hash.
    """
    if len(subject) <= SUBJECT_LENGTH:
        return subject
    digest = blake2b(subject.encode(), digest_size=16).hexdigest()
    return f"{subject[: SUBJECT_LENGTH - len(digest) - 1]}~{digest}"


@lru_cache(maxsize=256)
def model_with_label(label: str) -> type[Model] | None:
    """Returns the site's model `label`, or None."""
    with suppress(LookupError, ValueError):
        return apps.get_model(label)
    return None


@cached_setting(maxsize=None)
def label_of(model: type[Model]) -> str:
    """Returns the first part of the subjects of the model's rows: `blog.post`."""
    return owner(model)._meta.label_lower


def owner(model: type[Model]) -> type[Model]:
    """Returns the model whose counts or read state the model has: its own, or those of a parent.

    A proxy or a child shares those of its parent.
    """
    table = _model_of_counts(model)
    if issubclass(table, Tracked):
        return table
    models = _configured_models()
    for labels in (models.counted, models.with_read_state):
        for parent in with_parents(table):
            if parent._meta.label_lower in labels:
                return parent
    return table


class _ConfiguredModels(NamedTuple):
    """The labels of models that the setting MODELS, a `news_for` or a part names."""

    counted: set[str]
    with_read_state: set[str]
    derived: set[str]  # with read state, of which a part makes their dots out of other categories


@cached_setting("INSTALLED_APPS")
def _configured_models() -> _ConfiguredModels:
    """Returns the labels of the models that MODELS counts, and of those with read state."""
    options_by_label = registry().items()
    with_read_state = {label for label, options in options_by_label if options.read_state}
    for model in apps.get_models():
        for field in news_links(model):
            with_read_state.add(_model_of_counts(field.related_model)._meta.label_lower)
    derived = {
        _model_of_counts(model)._meta.label_lower
        for part in parts.installed()
        for model in part.derived_categories()
    }
    return _ConfiguredModels(
        counted={label for label, options in options_by_label if options.counted},
        with_read_state=with_read_state | derived,
        derived=derived,
    )


def _model_of_counts(model: type[Model]) -> type[Model]:
    """Returns the model whose table has the counts, where the model is Tracked.

    Any other model is returned as it is, and in place of a proxy the model of the proxy.
    """
    concrete = model._meta.concrete_model or model
    if issubclass(concrete, Tracked):
        return concrete._meta.get_field("view_count").model
    return concrete


def with_parents(model: type[Model]) -> Iterator[type[Model]]:
    """Yields the model, and each parent whose primary key it shares, the nearest first.

    In place of a proxy, it begins with the model of the proxy.
    """
    model = model._meta.concrete_model or model
    yield model
    pk: Any = model._meta.pk
    if pk.remote_field and pk.remote_field.parent_link:
        yield from with_parents(pk.related_model)


@cached_setting(maxsize=None)
def is_counted(model: type[Model]) -> bool:
    """Returns True if the views of the model's objects are counted.

    The model then extends Tracked, or MODELS counts it or a parent.
    """
    return issubclass(model, Tracked) or label_of(model) in _configured_models().counted


def counted_subject_of(obj: Any) -> str:
    """Returns the subject of an object that has counts.

    Raises TypeError for an object that has none, and ValueError for one that is not saved.
    """
    problem = why_not_counted(obj.__class__)
    if problem:
        raise TypeError(problem)
    return subject_of(obj)


@cached_setting(maxsize=None)
def why_not_counted(model: type[Any]) -> str:
    """Returns the reason why objects of the class have no counts; "" for a counted model."""
    if not issubclass(model, Model):
        return f"{model.__name__} is no model, so it has no counts; pass the object that it wraps."
    if is_counted(model):
        return ""
    children = [child for child in apps.get_models() if issubclass(child, model)]
    counted = ", ".join(child.__name__ for child in children if is_counted(child))
    if counted:
        return (
            f"{model.__name__} has no counts, only its children have ({counted}); pass the child's"
            " object."
        )
    line = line_of_settings(model._meta.label, "counted", value=True)
    ways = f"let it extend readtrack.models.Tracked, or write into the settings {line}"
    return f"{model.__name__} has no counts; {ways}."


def line_of_settings(label: str, key: str, *, value: object) -> str:
    """Returns the line of Python that sets a key of the model's entry in MODELS.

    It is for the end of the settings, and error messages show it.

    It works where the site has no MODELS yet, too.
    """
    return f"READTRACK.setdefault('MODELS', {{}}).setdefault('{label}', {{}})[{key!r}] = {value!r}"


@cached_setting(maxsize=None)
def counted_models() -> list[type[Model]]:
    """Returns the models of this site that own counts, in the order of INSTALLED_APPS."""
    return [model for model in apps.get_models() if is_counted(model) and owner(model) is model]


def tracked_models() -> list[type[Tracked]]:
    """Returns the counted models that have the columns of Tracked."""
    return [model for model in counted_models() if issubclass(model, Tracked)]


@cached_setting(maxsize=None)
def has_read_state(model: type[Model]) -> bool:
    """Returns True for a category: `news_for` leads to it, or MODELS gives it read state."""
    return label_of(model) in _configured_models().with_read_state


def is_derived(model: type[Model]) -> bool:
    """Returns True for a category without read state of its own: a part makes its dot out of those
    of other categories. So nobody has read it by its page.
    """
    return label_of(model) in _configured_models().derived


def can_be_unread(obj: Model) -> bool:
    """Returns True if a dot may be shown for the object.

    It then has read state, and no `has_news` (a method or a value) that is false because the
    object is empty.
    """
    if not has_read_state(obj.__class__):
        return False
    has_news = getattr(obj, "has_news", True)
    if callable(has_news):
        has_news = has_news()
    return bool(has_news)


def category_subjects(objs: Iterable[Model]) -> list[str]:
    """Returns the subjects of the objects, each once.

    Raises TypeError for an object without read state, and for a single object in place of many.
    """
    objs = list(listed(objs))
    for obj in objs:
        problem = why_no_read_state(obj.__class__)
        if problem:
            raise TypeError(problem)
    subjects_by_object = {obj: subject_of(obj) for obj in objs}
    return list(subjects_by_object.values())


def why_no_read_state(model: type[Any]) -> str:
    """Returns the reason why objects of the class have no dots; "" for a model with read state."""
    if issubclass(model, Model) and has_read_state(model):
        return ""
    label = model.__name__
    if issubclass(model, Model):
        label = model._meta.label
    line = line_of_settings(label, "read_state", value=True)
    return (
        f"{model.__name__} has no read state; write into the settings {line},"
        " or name it in news_for."
    )


def read_state_models() -> list[type[Model]]:
    """Returns the models of this site that own read state, in the order of INSTALLED_APPS."""
    return [model for model in apps.get_models() if has_read_state(model) and owner(model) is model]


def news_links(model: type[Model]) -> list[Any]:
    """Returns the fields that lead to the objects that a new row of the model makes unread.

    They are foreign keys and many-to-many fields. Other names in `news_for` are left out; a check
    reports them.
    """
    if issubclass(model, Tracked):
        field_names = model.news_for
    else:
        field_names = option_of(model, "news_for") or ()
    links = []
    for name in field_names:
        with suppress(FieldDoesNotExist):
            field = model._meta.get_field(name)
            if isinstance(field, (ForeignKey, ManyToManyField)):
                links.append(field)
    return links


def option_of(model: type[Model], name: str) -> Any:
    """Returns the option in MODELS of the model, or of its nearest parent that has it; else None.

    It may be the key of a part.
    """
    for parent in with_parents(model):
        options = registry().get(parent._meta.label_lower)
        if options is None:
            continue
        value = options.of_parts.get(name, getattr(options, name, None))
        if value is not None:
            return value
    return None


def is_news_by_models_setting(row: Model) -> bool:
    """Returns True unless MODELS names a function that says that the row is no news."""
    path = option_of(row.__class__, "is_news")
    if not path:
        return True
    return says_true(path, lambda: import_string(path)(row), otherwise="the row is no news")


def author_of(obj: Model, *, of_counts: bool = False) -> str:
    """Returns the primary key of the object's author as text; "" without an author.

    With `of_counts` it is the author of the object's counts.
    """
    model = obj.__class__
    if of_counts:
        # A child shares the counts of its parent, so their author is the one that the parent names.
        model = owner(model)
    field = author_field(model)
    if field is None:
        return ""
    pk = getattr(obj, field.attname)
    if pk is None:
        return ""
    return str(pk)


def author_field(model: type[Model]) -> Any:
    """Returns the foreign key to users that the `news_author` of the model, or of MODELS, names;
    None without one.
    """
    if issubclass(model, Tracked):
        field_name = model.news_author
    else:
        field_name = option_of(model, "news_author")
    if not field_name:
        return None
    try:
        field: Any = model._meta.get_field(field_name)
    except FieldDoesNotExist:  # a check reports it
        return None
    if field.related_model is not get_user_model() or not field.target_field.primary_key:
        return None
    return field


def check_stage(stage: str) -> None:
    """Raises ValueError for a stage that the funnel lacks."""
    stages = parts.stages()
    if stage not in stages:
        listed = ", ".join(stages) or "none"
        raise ValueError(f"The funnel has no stage {stage!r}; it has: {listed}.")
