"""System checks: what can be set up wrongly, without touching a network. `messages.ini` has their
words.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, Union, get_args, get_origin

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import ERROR, WARNING, CheckMessage
from django.core.exceptions import FieldDoesNotExist
from django.db.migrations.loader import MigrationLoader
from django.urls import NoReverseMatch, reverse

from readtrack import subjects
from readtrack.conf import TYPES, conf, function_problem, patterns
from readtrack.hits import addresses, dimensions, exclusions, readers
from readtrack.models import KIND_LENGTH, CountField, Tracked
from readtrack.models.tracked import COUNTS
from readtrack.store import connection, keys
from readtrack.store.uniques import STRATEGIES

LEVELS = {"E": ERROR, "W": WARNING}  # by the letter of an id
AT_LEAST_ONE = ("FLUSH_CHUNK", "FLUSH_TASKS")
LONGEST_DIMENSION = KIND_LENGTH - len("views:")  # characters
COOKIE = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # a token of RFC 6265
MIDDLEWARE = "readtrack.middleware.ReadTrackMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
COMPRESSOR = re.compile("gzip|brotli|compress|zstd", re.IGNORECASE)


def problem_if(condition: object, *words: Any) -> list[tuple[Any, ...]]:
    """Returns one problem with these words if the condition is true, and otherwise none."""
    return [words] if condition else []


def wrong_types() -> Iterator[tuple[str, str, Any]]:
    for name in filter(TYPES.__contains__, vars(conf)):
        kind, value = TYPES[name], getattr(conf, name)
        one_of = f"one of {', '.join(map(repr, get_args(kind)))}", get_args(kind).__contains__
        words, fits = EXPECTED.get(get_origin(kind) or kind, one_of)
        if not fits(value):
            yield name, words, value


EXPECTED: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    int: ("a whole number, at least 0", lambda value: type(value) is int and value >= 0),
    float: ("a number above 0", lambda value: type(value) in (int, float) and value > 0),
    bool: ("True or False", lambda value: isinstance(value, bool)),
    str: ("a string", lambda value: isinstance(value, str)),
    Sequence: (
        "a list of strings",
        lambda value: (
            isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
        ),
    ),
    Mapping: ("a dict", lambda value: isinstance(value, dict)),
    Union: (
        "'auto' or a whole number, at least 0",
        lambda value: value == "auto" or EXPECTED[int][1](value),
    ),
}


def unusable_dimensions() -> Iterator[tuple[str, str]]:
    names = [dimensions.name_of(path) for path in conf.DIMENSIONS]
    for path, name in zip(conf.DIMENSIONS, names, strict=True):
        if name in keys.RESERVED:
            yield path, f"other keys are called '{name}'"
        elif len(name) > LONGEST_DIMENSION:
            yield path, f"its name is longer than {LONGEST_DIMENSION} characters"
        elif problem := dimensions.problem(path):
            yield path, problem
        elif names.count(name) > 1:
            yield path, f"another one is also called '{name}'"


def shared_tenants() -> Iterator[tuple[str]]:
    """Schema tenants, of django-tenants or django-tenant-schemas, whose rows have the same ids."""
    own = {str(app).partition(".apps.")[0] for app in getattr(settings, "TENANT_APPS", ())}
    models = (*subjects.tracked_models(), *subjects.read_state_models())
    if hasattr(settings, "TENANT_MODEL") and any(
        model._meta.app_config.name in own for model in models
    ):
        if "readtrack" not in own:
            yield ("readtrack is not in TENANT_APPS",)
        elif not keys.PATH.fullmatch(conf.PREFIX):
            yield ("READTRACK['PREFIX'] names no function",)


def _precedes(first: str, second: str) -> bool:
    """Returns True if both are in MIDDLEWARE, in that order. The second sees each response first."""
    order = settings.MIDDLEWARE
    return first in order and second in order[order.index(first) + 1 :]


def missing_urls() -> Iterator[tuple[str]]:
    try:
        reverse("readtrack:page")
    except NoReverseMatch:
        if conf.SHARED_PATHS or conf.COUNT_BY == "script":
            yield ("SHARED_PATHS" if conf.SHARED_PATHS else "COUNT_BY",)


def unfollowed_news() -> Iterator[tuple[str, str]]:
    """Yields the settings and attributes that say what news is for, and what is wrong with them."""
    own = [
        (f"{model._meta.label}.news_for", model, model.news_for)
        for model in subjects.tracked_models()
    ]
    others = [
        (f"READTRACK['NEWS_FOR']['{label}']", subjects.model_with_label(str(label)), names)
        for label, names in conf.NEWS_FOR.items()
    ]
    for where, model, names in (*own, *others):
        if model is not None and not isinstance(names, (list, tuple)):
            yield where, f"is {names!r} and no list, such as [{names!r}]"
        elif model is not None and names is not Tracked.news_for:  # whose names a model may lack
            followed = {field.name for field in subjects.news_links(model)}
            problem = "which is no foreign key or many-to-many field of the model"
            yield from (
                (where, f"names {name!r}, {problem}") for name in names if name not in followed
            )


def unknown_fields() -> Iterator[tuple[str, str, str]]:
    for model in subjects.tracked_models():
        author = (model.news_author,) if model.news_author else ()
        for attribute, names in (("news_fields", model.news_fields), ("news_author", author)):
            for name in names:
                try:
                    model._meta.get_field(name)
                except FieldDoesNotExist:
                    yield model._meta.label, attribute, name


def missing_migrations() -> Iterator[tuple[str, str, str]]:
    if sys.argv[1:2] == ["makemigrations"]:  # it is about to add them
        return
    models = subjects.tracked_models()
    try:
        # As makemigrations does, before the app of a custom user has its first migration.
        loader = MigrationLoader(None, ignore_no_migrations=True)
        state = loader.project_state(
            [leaf for one in models for leaf in loader.graph.leaf_nodes(one._meta.app_label)]
        )
    except (
        Exception
    ):  # Django's own commands report broken migrations, and have to be able to merge them
        return
    for model in models:
        app, name = model._meta.app_label, model._meta.model_name
        known = state.models.get((app, name or ""))
        missing = [field for field in COUNTS if known is None or field not in known.fields]
        if app in loader.migrated_apps and missing:
            yield model._meta.label, app, " and ".join(missing)


def _strategies() -> list[tuple[str, str]]:
    """Returns each place that names a strategy for unique visitors, and the name."""
    own = [
        (f"{model._meta.label}.unique_strategy", model.unique_strategy)
        for model in subjects.tracked_models()
    ]
    return [("READTRACK['UNIQUE']", conf.UNIQUE), *((where, name) for where, name in own if name)]


TYPE_CHECKS = ("readtrack.E001", "readtrack.E002", "readtrack.W003")
CHECKS: dict[
    str, Callable[[], Iterable[tuple[Any, ...]]]
] = {  # each yields the words of its problems
    "readtrack.E001": lambda: problem_if(
        not isinstance(given := getattr(settings, "READTRACK", {}), dict), type(given).__name__
    ),
    "readtrack.E002": wrong_types,
    "readtrack.W003": lambda: [
        (str(name), ", ".join(get_close_matches(str(name).upper(), TYPES) or TYPES))
        for name in vars(conf)
        if name not in TYPES
    ],
    "readtrack.E012": lambda: problem_if(error := connection.misconfiguration(), conf.CACHE, error),
    "readtrack.W013": lambda: problem_if(
        (prefix := settings.CACHES.get(conf.CACHE, {}).get("KEY_PREFIX")) and not conf.PREFIX,
        conf.CACHE,
        prefix,
    ),
    "readtrack.E024": shared_tenants,
    "readtrack.W006": lambda: problem_if(MIDDLEWARE not in settings.MIDDLEWARE),
    "readtrack.E007": lambda: problem_if(_precedes(MIDDLEWARE, AUTHENTICATION)),
    "readtrack.E016": lambda: [
        (path,)
        for path in settings.MIDDLEWARE
        if _precedes(MIDDLEWARE, path) and COMPRESSOR.search(path)
    ],
    "readtrack.W017": lambda: problem_if(
        _precedes("django.middleware.cache.UpdateCacheMiddleware", MIDDLEWARE)
    ),
    "readtrack.W028": missing_urls,
    "readtrack.W018": lambda: problem_if(
        _precedes(MIDDLEWARE, "django.middleware.http.ConditionalGetMiddleware")
    ),
    "readtrack.E014": lambda: [(name,) for name in AT_LEAST_ONE if getattr(conf, name) == 0],
    "readtrack.E042": lambda: problem_if(
        conf.PARTITIONS != 1 and not 16 <= conf.PARTITIONS <= 1024, conf.PARTITIONS
    ),
    "readtrack.E043": lambda: problem_if(
        conf.FLUSH_TASKS > conf.PARTITIONS, conf.FLUSH_TASKS, conf.PARTITIONS
    ),
    "readtrack.E020": lambda: [
        bad for name in ("BOTS", "NOT_BOTS", "SHARED_PATHS") for bad in patterns(name)[1]
    ],
    "readtrack.E022": lambda: problem_if(error := addresses.proxies()[1], error),
    "readtrack.E023": lambda: problem_if(not COOKIE.fullmatch(conf.COOKIE), conf.COOKIE),
    "readtrack.E027": lambda: problem_if(
        not re.fullmatch(r"[\w.-]+(?:/[\w.-]+)*", conf.SCRIPT, re.ASCII), conf.SCRIPT
    ),
    "readtrack.E032": lambda: problem_if(
        not conf.FUNNEL or len(set(conf.FUNNEL)) < len(conf.FUNNEL), conf.FUNNEL
    ),
    "readtrack.E033": unusable_dimensions,
    "readtrack.E026": lambda: exclusions.rules()[1],
    "readtrack.E040": lambda: problem_if(conf.ANONYMOUS_READERS and conf.READERS == "id"),
    "readtrack.E041": lambda: [
        (name, path, problem)
        for name in ("CONSENT", "IS_BOT", "PREFIX", "READ_QUERYSET", "VIEW_NUMBERS")
        if (path := getattr(conf, name)) and (name != "PREFIX" or keys.PATH.fullmatch(path))
        if (problem := function_problem(path))
    ],
    "readtrack.E008": lambda: [
        (setting, name)
        for setting in ("COUNTED_MODELS", "READ_STATE_MODELS", "NEWS_FOR")
        for name in getattr(conf, setting)
        if subjects.model_with_label(str(name)) is None
    ],
    "readtrack.E009": unknown_fields,
    "readtrack.E044": unfollowed_news,
    "readtrack.E010": lambda: [
        (one._meta.label,) for one in subjects.counted_models() if len(one._meta.pk_fields) > 1
    ],
    "readtrack.E045": lambda: [
        (model._meta.label, subjects.owner(model)._meta.label)
        for model in apps.get_models()
        if issubclass(model, Tracked) and subjects.owner(model) not in subjects.with_parents(model)
    ],
    "readtrack.W019": lambda: [
        (model._meta.label, name)
        for model in subjects.tracked_models()
        for name in COUNTS
        if not isinstance(model._meta.get_field(name), CountField)
    ],
    "readtrack.W011": missing_migrations,
    "readtrack.E030": lambda: [
        (where, name, ", ".join(map(repr, STRATEGIES)))
        for where, name in _strategies()
        if name not in STRATEGIES
    ],
    "readtrack.W034": lambda: [
        (
            where,
            name,
            ", ".join(repr(name) for name, way in STRATEGIES.items() if not way.needs_reader),
        )
        for where, name in _strategies()
        if name in STRATEGIES and STRATEGIES[name].needs_reader and not readers.has_whole_ids()
    ],
}


@cache
def texts(name: str, package: str = "readtrack.checks") -> Mapping[str, str]:
    """Returns the message and the hint of that name in the package's messages.ini."""
    parser = ConfigParser(interpolation=None)
    parser.read_string(files(package).joinpath("messages.ini").read_text(encoding="utf-8"))
    return {key: text.replace("\n", " ") for key, text in parser[name].items()}


def check_setup(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Returns all problems. While a setting has a wrong type, only the types are checked."""
    found = []
    for name in TYPE_CHECKS if any(wrong_types()) else CHECKS:
        for words in CHECKS[name]():
            message, hint = (text.format(*words) for text in texts(name).values())
            found.append(CheckMessage(LEVELS[name[-4]], message, hint, id=name))
    return found
