"""Categories: what carries dots, and which of them a post is news for."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from django.apps import apps
from django.db.models import ManyToManyField, Model

from readtrack.conf import conf
from readtrack.models import Tracked
from readtrack.subjects import label_of, owner, subject_of, subject_of_row
from readtrack.subjects import news_links as news_links


def has_read_state(model: type[Model]) -> bool:
    """Whether the model carries dots: a Tracked model points at it, or READ_STATE_MODELS names it."""
    label = label_of(model)
    if any(label == name.lower() for name in conf.READ_STATE_MODELS):
        return True
    return owner(model) in _news_targets()


def read_state_models() -> list[type[Model]]:
    """The models of this site that carry dots."""
    return [model for model in apps.get_models() if has_read_state(model) and owner(model) is model]


def of(obj: Tracked) -> Iterator[str]:
    """The subjects of the categories that news in `obj` belongs to. A query for each many-to-many field only."""
    for field in news_links(type(obj)):
        if isinstance(field, ManyToManyField):
            yield from (subject_of(target) for target in getattr(obj, field.name).only("pk"))
        elif getattr(obj, field.attname) is None:
            continue
        elif field.target_field.primary_key:
            yield subject_of_row(field.related_model, getattr(obj, field.attname))
        else:
            yield subject_of(getattr(obj, field.name))


def author_of(obj: Tracked) -> Any | None:
    """The primary key of the user who wrote it, if the model names a `news_author`. No query."""
    if not obj.news_author:
        return None
    field: Any = obj._meta.get_field(obj.news_author)
    return getattr(obj, field.attname)


@cache
def _news_targets() -> frozenset[type[Model]]:
    models = [model for model in apps.get_models() if issubclass(model, Tracked)]
    return frozenset(owner(field.related_model) for model in models for field in news_links(model))
