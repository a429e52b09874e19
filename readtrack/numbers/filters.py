"""The filters that an address has chosen, by their names for people."""

from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.utils.translation import gettext as _

from readtrack.numbers import tables
from readtrack.numbers.data import ScopeData
from readtrack.subjects import counted_models, label_of, parse_subject
from readtrack.texts import name_of


class Chosen(NamedTuple):
    """A filter in force: its name in the address, its label, and its value for people."""

    name: str
    label: str
    value: str


def chosen_in(data: ScopeData) -> list[Chosen]:
    """Returns the filters in force, without those that the page sets by itself.

    Makes a query for a category and for an author that no loaded row links to.
    """
    labels: dict[str, Any] = {
        "model": _("Model"),
        "category": _("Category"),
        "author": _("Author"),
    }
    filters = []
    for name, value in data.asked.chosen.items():
        if name not in data.asked.fixed:
            label = labels.get(name) or tables.labels_of(name).heading
            filters.append(Chosen(name, str(label), _value_text(data, name, value)))
    return filters


def _value_text(data: ScopeData, filter_name: str, value: str) -> str:
    """Returns the value of a filter as people know it."""
    if filter_name in ("category", "author"):
        return _name_of_chosen(data, filter_name, value)
    # The filter `model` has labels of models. The value of a dimension that equals a label is shown
    # as the model, too.
    for model in counted_models():
        if label_of(model) == value:
            return str(model._meta.verbose_name_plural)
    return tables.name_of_value(filter_name, value)


def _name_of_chosen(data: ScopeData, filter_name: str, value: str) -> str:
    """Returns the name of a category or an author; the value if there is no such row."""
    row = data.objects.chosen(filter_name)
    if row is None:
        row = _chosen_category(value) if filter_name == "category" else _chosen_author(value)
    return name_of(value if row is None else row)


def _chosen_category(subject: str) -> Model | None:
    """Returns the row of a category's subject, or None."""
    model_and_pk = parse_subject(subject)
    if model_and_pk is None:
        return None
    model, pk = model_and_pk
    return model._default_manager.filter(pk=pk).first()


def _chosen_author(pk: str) -> Model | None:
    """Returns the user with the primary key `pk`, or None."""
    return get_user_model()._default_manager.filter(pk=pk).first()
