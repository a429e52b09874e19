"""Checks of the models whose views are counted, and of settings that name models."""

from django.apps import apps
from django.core import checks

from readtrack import subjects
from readtrack.conf import conf
from readtrack.models import CountField, Tracked
from readtrack.models.tracked import COUNTS

SETTINGS = ("COUNTED_MODELS", "READ_STATE_MODELS", "NEWS_FOR")


def check_names() -> list[checks.CheckMessage]:
    """Checks that the models which settings name exist."""
    return [
        checks.Error(
            f"READTRACK['{setting}'] names '{label}', which is no model.",
            hint="Name models as 'app_label.ModelName'.",
            id="readtrack.E008",
        )
        for setting in SETTINGS
        for label in getattr(conf, setting)
        if subjects.model_with_label(str(label)) is None
    ]


def check_primary_keys() -> list[checks.CheckMessage]:
    """Checks that a counted model has a primary key of one column."""
    return [
        checks.Error(
            f"{model._meta.label} has a composite primary key, so its views cannot be counted.",
            hint=(
                "Take it out of COUNTED_MODELS; or give it a primary key of one column,"
                " and a unique constraint instead."
            ),
            id="readtrack.E010",
        )
        for model in subjects.counted_models()
        if len(model._meta.pk_fields) > 1
    ]


def check_parents() -> list[checks.CheckMessage]:
    """Checks that a child has the same primary key as the parent that has its counts."""
    messages: list[checks.CheckMessage] = []
    for model in apps.get_models():
        if not issubclass(model, Tracked):
            continue
        owner = subjects.owner(model)
        if owner in subjects.with_parents(model):
            continue
        child = model._meta.label
        parent = owner._meta.label
        messages.append(
            checks.Error(
                f"{child} has another primary key than {parent},"
                f" which has its columns, so a view counts for another row of {parent}.",
                hint=(
                    "Name the parent that extends Tracked first among its bases,"
                    " and give the child no primary key of its own."
                ),
                id="readtrack.E045",
            )
        )
    return messages


def check_count_fields() -> list[checks.CheckMessage]:
    """Checks that the columns of counts are those of Tracked, which save() does not write."""
    return [
        checks.Warning(
            f"{model._meta.label}.{name} is a field of the model's own,"
            " so save() can write an old count back.",
            hint=(
                "Delete its line from the model, because Tracked has the field,"
                " and run makemigrations. The values stay. If the column still has another name,"
                " rename the field in a migration before that."
            ),
            id="readtrack.W019",
        )
        for model in subjects.tracked_models()
        for name in COUNTS
        if not isinstance(model._meta.get_field(name), CountField)
    ]
