"""System checks: a table of what can be set up wrongly, each with what to do. None of them touches a network."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, get_args, get_origin

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db.migrations.loader import MigrationLoader
from django.utils.module_loading import import_string

from readtrack import addresses, bots, dimensions, subjects
from readtrack import conf as configuration
from readtrack.conf import conf
from readtrack.store.connection import is_django_redis
from readtrack.store.uniques import STRATEGIES

MIDDLEWARE = "readtrack.middleware.ReadTrackMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"


class Check(NamedTuple):
    """One thing that can be wrong: `problems` yields the words that fill the message, once a problem."""

    id: str
    problems: Callable[[], Iterable[tuple[Any, ...]]]
    message: str
    hint: str
    level: int = checks.ERROR


def check_setup(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Everything that the table below finds."""
    return [
        checks.CheckMessage(check.level, check.message.format(*words), check.hint.format(*words), id=check.id)
        for check in CHECKS
        for words in check.problems()
    ]


def _overrides() -> dict[str, Any]:
    overrides = getattr(settings, "READTRACK", {})
    return overrides if isinstance(overrides, dict) else {}


def not_a_dict() -> Iterator[tuple[str]]:
    if not isinstance(getattr(settings, "READTRACK", {}), dict):
        yield (type(settings.READTRACK).__name__,)


def unknown_settings() -> Iterator[tuple[str, str]]:
    for name in _overrides():
        if name not in configuration.TYPES:
            yield str(name), ", ".join(get_close_matches(str(name).upper(), configuration.TYPES) or configuration.TYPES)


def wrong_types() -> Iterator[tuple[str, str, Any]]:
    for name, value in _overrides().items():
        kind = configuration.TYPES.get(name)
        if kind is not None and not _fits(value, kind):
            yield name, getattr(kind, "__name__", str(kind)), value


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is Mapping:
        return isinstance(value, dict)
    if get_origin(kind) is Sequence or get_origin(kind) is not None:
        inner = get_args(kind)[0]
        return isinstance(value, (list, tuple)) and all(_fits(item, inner) for item in value)
    if kind is float:
        return type(value) in (int, float) and value > 0
    if kind is int:
        return type(value) is int and value >= 0
    return isinstance(value, kind)


def _sane(name: str) -> Any:
    """The setting, or its default where a check of its own says that it is of a wrong type."""
    value = getattr(conf, name)
    return value if _fits(value, configuration.TYPES[name]) else configuration.DEFAULTS[name]


def missing_cache() -> Iterator[tuple[Any]]:
    if _sane("CACHE") not in settings.CACHES:
        yield (conf.CACHE,)


def wrong_cache() -> Iterator[tuple[Any, str]]:
    backend = settings.CACHES.get(_sane("CACHE"), {}).get("BACKEND")
    if backend is not None and not is_django_redis(backend):
        yield conf.CACHE, backend


def missing_middleware() -> Iterator[tuple[()]]:
    if MIDDLEWARE not in settings.MIDDLEWARE:
        yield ()


def early_middleware() -> Iterator[tuple[()]]:
    order = list(settings.MIDDLEWARE)
    if MIDDLEWARE in order and AUTHENTICATION in order[order.index(MIDDLEWARE) :]:
        yield ()


def unknown_categories() -> Iterator[tuple[Any]]:
    for name in _sane("CATEGORIES"):
        try:
            apps.get_model(name)
        except (LookupError, ValueError):
            yield (name,)


def unknown_news() -> Iterator[tuple[str, str, str]]:
    for model in subjects.tracked_models():
        named = {"news_for": model.news_for if "news_for" in vars(model) else ()}
        named |= {"news_fields": model.news_fields, "news_author": (model.news_author,) if model.news_author else ()}
        for attribute, names in named.items():
            for name in names:
                try:
                    model._meta.get_field(name)
                except FieldDoesNotExist:
                    yield model._meta.label, attribute, name


def mixed_readers() -> Iterator[tuple[()]]:
    if conf.ANONYMOUS_READERS and conf.READERS == "id":
        yield ()


def unknown_queryset() -> Iterator[tuple[str]]:
    try:
        is_known = not conf.READ_QUERYSET or callable(import_string(conf.READ_QUERYSET))
    except ImportError:
        is_known = False
    if not is_known:
        yield (conf.READ_QUERYSET,)


def composite_keys() -> Iterator[tuple[str]]:
    for model in subjects.tracked_models():
        if len(model._meta.pk_fields) > 1:
            yield (model._meta.label,)


def bad_cookies() -> Iterator[tuple[str]]:
    if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", conf.COOKIE, re.ASCII):
        yield (conf.COOKIE,)


def bad_judges() -> Iterator[tuple[str]]:
    if error := bots.bad_judge():
        yield (error,)


def bad_proxies() -> Iterator[tuple[str]]:
    if error := addresses.bad_proxies():
        yield (error,)


def unknown_strategies() -> Iterator[tuple[str, str]]:
    if conf.UNIQUE not in STRATEGIES:
        yield "READTRACK['UNIQUE']", conf.UNIQUE
    for model in subjects.tracked_models():
        if model.unique_strategy and model.unique_strategy not in STRATEGIES:
            yield f"{model._meta.label}.unique_strategy", model.unique_strategy


def unknown_window_store() -> Iterator[tuple[str]]:
    if conf.WINDOW_STORE not in ("keys", "compact"):
        yield (conf.WINDOW_STORE,)


def unusable_funnel() -> Iterator[tuple[Any]]:
    if not conf.FUNNEL or len(set(conf.FUNNEL)) < len(conf.FUNNEL):
        yield (conf.FUNNEL,)


def unusable_dimensions() -> Iterator[tuple[str, str]]:
    names = [dimensions.name_of(path) for path in conf.DIMENSIONS]
    for path, name in zip(conf.DIMENSIONS, names, strict=True):
        if problem := dimensions.problem(path):
            yield path, problem
        elif names.count(name) > 1:
            yield path, f"another one is called '{name}', too"


def missing_migrations() -> Iterator[tuple[str, str]]:
    models = subjects.tracked_models()
    if not models:
        return
    loader = MigrationLoader(None)
    state = loader.project_state([node for model in models for node in loader.graph.leaf_nodes(model._meta.app_label)])
    for model in models:
        app, name = model._meta.app_label, model._meta.model_name
        if app not in loader.migrated_apps:
            continue
        known = state.models.get((app, name or ""))
        if known is None or "view_count" not in known.fields:
            yield model._meta.label, app


USE_DJANGO_REDIS = "set its BACKEND to django_redis.cache.RedisCache, or name another alias in READTRACK['CACHE']."

CHECKS = [
    Check(
        "readtrack.E001",
        not_a_dict,
        "READTRACK is a {}, not a dict.",
        hint="Set READTRACK = {{}} for the defaults.",
    ),
    Check(
        "readtrack.E002",
        wrong_types,
        "READTRACK['{0}'] is {2!r}, not a fitting {1}.",
        hint="Give it a {1}, or leave it out for the default.",
    ),
    Check(
        "readtrack.W003",
        unknown_settings,
        "READTRACK has no setting '{0}'.",
        hint="Did you mean: {1}?",
        level=checks.WARNING,
    ),
    Check(
        "readtrack.E004",
        missing_cache,
        "CACHES has no alias '{0}', where readtrack looks for Redis.",
        hint=f"Add it, and {USE_DJANGO_REDIS}",
    ),
    Check(
        "readtrack.E005",
        wrong_cache,
        "The cache '{0}' is a {1}, and readtrack needs django-redis.",
        hint=f"Better {USE_DJANGO_REDIS}",
    ),
    Check(
        "readtrack.W006",
        missing_middleware,
        "ReadTrackMiddleware is not in MIDDLEWARE, so no view is counted.",
        hint=f"Add '{MIDDLEWARE}' after '{AUTHENTICATION}'.",
        level=checks.WARNING,
    ),
    Check(
        "readtrack.E007",
        early_middleware,
        "ReadTrackMiddleware comes before AuthenticationMiddleware, so nobody is ever signed in.",
        hint=f"Move '{MIDDLEWARE}' below '{AUTHENTICATION}'.",
    ),
    Check(
        "readtrack.E008",
        unknown_categories,
        "READTRACK['CATEGORIES'] names '{0}', which is no model.",
        hint="Name models as 'app_label.ModelName'.",
    ),
    Check(
        "readtrack.E009",
        unknown_news,
        "{0}.{1} names '{2}', which is no field of it.",
        hint="Name fields of the model: in news_for those whose targets become unread, in news_author a foreign key.",
    ),
    Check(
        "readtrack.E040",
        mixed_readers,
        "READTRACK['READERS'] = 'id' leaves no numbers for ANONYMOUS_READERS.",
        hint="Set READERS to 'auto' or 'ordinal', and run: manage.py readtrack convert-reads",
    ),
    Check(
        "readtrack.E041",
        unknown_queryset,
        "READTRACK['READ_QUERYSET'] names '{0}', which is no function.",
        hint="Give the path of a function (request, queryset) that gives the rows which the user may see.",
    ),
    Check(
        "readtrack.E010",
        composite_keys,
        "{0} has a composite primary key, which cannot be tracked.",
        hint="Give it a primary key of one column, and a unique constraint instead.",
    ),
    Check(
        "readtrack.W011",
        missing_migrations,
        "{0} counts views, but no migration gives it view_count.",
        hint="Run: manage.py makemigrations {1} && manage.py migrate",
        level=checks.WARNING,
    ),
    Check(
        "readtrack.E020",
        bots.bad_patterns,
        "READTRACK['{0}'] has {1!r}, which is no regular expression: {2}.",
        hint="Correct it; escape what stands for itself, as re.escape does. Until then it is passed over.",
    ),
    Check(
        "readtrack.E021",
        bad_judges,
        "READTRACK['IS_BOT'] cannot be used: {0}.",
        hint="Name a function that takes a user agent and returns whether it is a robot's, as 'package.module.name'.",
    ),
    Check(
        "readtrack.E022",
        bad_proxies,
        "READTRACK['PROXY_COUNT'] and ['TRUSTED_PROXIES'] cannot be used: {0}",
        hint="Give addresses such as '10.0.0.1' or networks such as '10.0.0.0/8'. Until then REMOTE_ADDR is believed.",
    ),
    Check(
        "readtrack.E023",
        bad_cookies,
        "READTRACK['COOKIE'] is {0!r}, which no cookie can be called.",
        hint="Use letters, digits, - and _; for no cookie at all set READTRACK['ANONYMOUS'] = 'hash'.",
    ),
    Check(
        "readtrack.E030",
        unknown_strategies,
        "{0} is {1!r}, which is no way of counting unique visitors.",
        hint="Choose one of 'hll', 'set', 'daily' and 'bitmap'.",
    ),
    Check(
        "readtrack.E031",
        unknown_window_store,
        "READTRACK['WINDOW_STORE'] is {0!r}.",
        hint="Choose 'keys' or 'compact'.",
    ),
    Check(
        "readtrack.E032",
        unusable_funnel,
        "READTRACK['FUNNEL'] is {0!r}: it needs stages, each once.",
        hint="Name them in their order, such as ['view', 'click', 'convert'].",
    ),
    Check(
        "readtrack.E033",
        unusable_dimensions,
        "READTRACK['DIMENSIONS'] names '{0}': {1}.",
        hint="Name device, browser, os, country, referrer, or the dotted path of a callable that takes the request.",
    ),
]
