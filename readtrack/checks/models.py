"""Checks of the site's models, and of the settings that name them."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model

from readtrack.checks import Problems
from readtrack.conf import conf
from readtrack.hits import readers
from readtrack.models import CountField, Tracked
from readtrack.models.tracked import COUNTS
from readtrack.store.uniques import STRATEGIES
from readtrack.subjects import counted_models, model_with_label, news_links, tracked_models


def unknown_models() -> Iterator[tuple[str, str]]:
    for setting in ("COUNTED_MODELS", "READ_STATE_MODELS", "NEWS_FOR"):
        for name in getattr(conf, setting):
            if model_with_label(str(name)) is None:
                yield setting, name


def unfollowed_news() -> Iterator[tuple[str, Any]]:
    """Yields the settings and attributes that say what news is for, and those of their names that are no relations."""
    named: dict[str, tuple[type[Model], Any]] = {
        f"{model._meta.label}.news_for": (model, model.news_for)
        for model in tracked_models()
        if model.news_for is not Tracked.news_for
    }
    for label, names in conf.NEWS_FOR.items():
        if model := model_with_label(str(label)):
            named[f"READTRACK['NEWS_FOR']['{label}']"] = model, names
    for where, (model, names) in named.items():
        followed = {field.name for field in news_links(model)}
        listed = names if isinstance(names, (list, tuple)) else [names]
        yield from ((where, name) for name in listed if name not in followed)


def unknown_fields() -> Iterator[tuple[str, str, str]]:
    for model in tracked_models():
        author = (model.news_author,) if model.news_author else ()
        for attribute, names in (("news_fields", model.news_fields), ("news_author", author)):
            for name in names:
                try:
                    model._meta.get_field(name)
                except FieldDoesNotExist:
                    yield model._meta.label, attribute, name


def own_counts() -> Iterator[tuple[str, str]]:
    for model in tracked_models():
        for name in COUNTS:
            if not isinstance(model._meta.get_field(name), CountField):
                yield model._meta.label, name


def missing_migrations() -> Iterator[tuple[str, str, str]]:
    models = tracked_models()
    try:
        # As makemigrations does, before the app of a custom user has its first migration.
        loader = MigrationLoader(None, ignore_no_migrations=True)
        nodes = [node for model in models for node in loader.graph.leaf_nodes(model._meta.app_label)]
        state = loader.project_state(nodes)
    except Exception:  # Django's own commands report broken migrations, and have to be able to merge them
        return
    for model in models:
        app, name = model._meta.app_label, model._meta.model_name
        known = state.models.get((app, name or ""))
        missing = [field for field in COUNTS if known is None or field not in known.fields]
        if app in loader.migrated_apps and missing:
            yield model._meta.label, app, " and ".join(missing)


def uncounted_visitors() -> Iterator[tuple[str, str, str]]:
    others = ", ".join(repr(name) for name, way in STRATEGIES.items() if not way.needs_reader)
    for where, name in _strategies() if not readers.has_whole_ids() else ():
        if name in STRATEGIES and STRATEGIES[name].needs_reader:
            yield where, name, others


def _strategies() -> Iterator[tuple[str, str]]:
    """Yields each place that names a strategy for unique visitors, and the name."""
    yield "READTRACK['UNIQUE']", conf.UNIQUE
    for model in tracked_models():
        if model.unique_strategy:
            yield f"{model._meta.label}.unique_strategy", model.unique_strategy


CHECKS: dict[str, Problems] = {
    "readtrack.E008": unknown_models,
    "readtrack.E009": unknown_fields,
    "readtrack.E044": unfollowed_news,
    "readtrack.E010": lambda: [(model._meta.label,) for model in counted_models() if len(model._meta.pk_fields) > 1],
    "readtrack.W019": own_counts,
    "readtrack.W011": missing_migrations,
    "readtrack.E030": lambda: [
        (where, name, ", ".join(map(repr, STRATEGIES))) for where, name in _strategies() if name not in STRATEGIES
    ],
    "readtrack.W034": uncounted_visitors,
}
