"""Checks of the settings: of READTRACK itself, and of what CACHES, MIDDLEWARE and the URLs make of it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, Union, get_args, get_origin

from django.conf import settings
from django.urls import NoReverseMatch, reverse

from readtrack.checks import Problems, problem_if
from readtrack.conf import TYPES, conf, function_problem, patterns
from readtrack.hits import addresses, dimensions, exclusions
from readtrack.store import connection, keys
from readtrack.subjects import read_state_models, tracked_models

AT_LEAST_ONE = ("WINDOW_SLICES", "WINDOW_SHARDS", "FLUSH_CHUNK", "FLUSH_TASKS")
PATTERNS = ("BOTS", "NOT_BOTS", "SHARED_PATHS")
FUNCTIONS = ("CONSENT", "IS_BOT", "PREFIX", "READ_QUERYSET", "VIEW_NUMBERS")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*", re.ASCII)
COOKIE = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # a token of RFC 6265
MIDDLEWARE = "readtrack.middleware.ReadTrackMiddleware"
AUTHENTICATION = "django.contrib.auth.middleware.AuthenticationMiddleware"
UPDATE_CACHE = "django.middleware.cache.UpdateCacheMiddleware"
CONDITIONAL = "django.middleware.http.ConditionalGetMiddleware"
COMPRESSOR = re.compile("gzip|brotli|compress|zstd", re.IGNORECASE)


def unknown_settings() -> Iterator[tuple[str, str]]:
    for name in vars(conf):
        if name not in TYPES:
            yield str(name), ", ".join(get_close_matches(str(name).upper(), TYPES) or TYPES)


def wrong_types() -> Iterator[tuple[str, str, Any]]:
    for name, value in vars(conf).items():
        kind = TYPES.get(name, Any)
        words, fits = EXPECTED.get(get_origin(kind) or kind, ("", bool))
        if get_origin(kind) is Literal:
            words, fits = f"one of {', '.join(map(repr, get_args(kind)))}", get_args(kind).__contains__
        if name in TYPES and not fits(value):
            yield name, words, value


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


EXPECTED: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    int: ("a whole number, at least 0", _is_size),
    float: ("a number above 0", lambda value: type(value) in (int, float) and value > 0),
    bool: ("True or False", lambda value: isinstance(value, bool)),
    str: ("a string", lambda value: isinstance(value, str)),
    Sequence: ("a list of strings", _is_list_of_strings),
    Mapping: ("a dict", lambda value: isinstance(value, dict)),
    Union: ("'auto' or a whole number, at least 0", lambda value: value == "auto" or _is_size(value)),
}

TYPE_CHECKS: dict[str, Problems] = {
    "readtrack.E001": lambda: problem_if(
        not isinstance(given := getattr(settings, "READTRACK", {}), dict), type(given).__name__
    ),
    "readtrack.E002": wrong_types,
    "readtrack.W003": unknown_settings,
}


def unusable_dimensions() -> Iterator[tuple[str, str]]:
    names = [dimensions.name_of(path) for path in conf.DIMENSIONS]
    for path, name in zip(conf.DIMENSIONS, names, strict=True):
        if problem := dimensions.problem(path):
            yield path, problem
        elif names.count(name) > 1:
            yield path, f"another one is also called '{name}'"


def unusable_functions() -> Iterator[tuple[str, str, str]]:
    for name in FUNCTIONS:
        path = getattr(conf, name)
        is_path = path and (name != "PREFIX" or keys.PATH.fullmatch(path))
        if is_path and (problem := function_problem(path)):
            yield name, path, problem


def unprefixed_keys() -> list[tuple[Any, ...]]:
    prefix = settings.CACHES.get(conf.CACHE, {}).get("KEY_PREFIX")
    return problem_if(prefix and not conf.PREFIX, conf.CACHE, prefix)


def shared_tenants() -> list[tuple[Any, ...]]:
    """Schema tenants, of django-tenants or django-tenant-schemas, whose rows have the same ids."""
    if not hasattr(settings, "TENANT_MODEL"):
        return []
    own = {str(app).partition(".apps.")[0] for app in getattr(settings, "TENANT_APPS", ())}
    counted = {model._meta.app_config.name for model in (*tracked_models(), *read_state_models())}
    if not counted & own:
        return []
    problem = "readtrack is not in TENANT_APPS" if "readtrack" not in own else ""
    is_path = keys.PATH.fullmatch(conf.PREFIX)
    return problem_if(problem or not is_path, problem or "READTRACK['PREFIX'] names no function")


def _precedes(first: str, second: str) -> bool:
    """Returns True if both are in MIDDLEWARE, in that order. The second sees each response first."""
    order = settings.MIDDLEWARE
    return first in order and second in order[order.index(first) + 1 :]


def missing_urls() -> list[tuple[Any, ...]]:
    name = "SHARED_PATHS" if conf.SHARED_PATHS else "COUNT_BY"
    try:
        reverse("readtrack:page")
    except NoReverseMatch:
        return problem_if(conf.SHARED_PATHS or conf.COUNT_BY == "script", name)
    return []


CHECKS: dict[str, Problems] = {
    "readtrack.E012": lambda: problem_if(error := connection.misconfiguration(), conf.CACHE, error),
    "readtrack.W013": unprefixed_keys,
    "readtrack.E024": shared_tenants,
    "readtrack.W006": lambda: problem_if(MIDDLEWARE not in settings.MIDDLEWARE),
    "readtrack.E007": lambda: problem_if(_precedes(MIDDLEWARE, AUTHENTICATION)),
    "readtrack.E016": lambda: [
        (path,) for path in settings.MIDDLEWARE if _precedes(MIDDLEWARE, path) and COMPRESSOR.search(path)
    ],
    "readtrack.W017": lambda: problem_if(_precedes(UPDATE_CACHE, MIDDLEWARE)),
    "readtrack.W028": missing_urls,
    "readtrack.W018": lambda: problem_if(_precedes(MIDDLEWARE, CONDITIONAL)),
    "readtrack.E014": lambda: [(name,) for name in AT_LEAST_ONE if getattr(conf, name) == 0],
    "readtrack.E042": lambda: problem_if(conf.PARTITIONS != 1 and not 16 <= conf.PARTITIONS <= 1024, conf.PARTITIONS),
    "readtrack.E043": lambda: problem_if(conf.FLUSH_TASKS > conf.PARTITIONS, conf.FLUSH_TASKS, conf.PARTITIONS),
    "readtrack.E020": lambda: [bad for name in PATTERNS for bad in patterns(name)[1]],
    "readtrack.E022": lambda: problem_if(error := addresses.bad_proxies(), error),
    "readtrack.E023": lambda: problem_if(not COOKIE.fullmatch(conf.COOKIE), conf.COOKIE),
    "readtrack.E027": lambda: problem_if(not FILE.fullmatch(conf.SCRIPT), conf.SCRIPT),
    "readtrack.E032": lambda: problem_if(not conf.FUNNEL or len(set(conf.FUNNEL)) < len(conf.FUNNEL), conf.FUNNEL),
    "readtrack.E033": unusable_dimensions,
    "readtrack.E026": lambda: exclusions.rules().problems,
    "readtrack.E040": lambda: problem_if(conf.ANONYMOUS_READERS and conf.READERS == "id"),
    "readtrack.E041": unusable_functions,
}
