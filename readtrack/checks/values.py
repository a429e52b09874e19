"""Checks of READTRACK itself: unknown settings, wrong types, values that cannot be used."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, Union, get_args, get_origin

from django.conf import settings

from readtrack.checks import Problems, problem_if
from readtrack.conf import TYPES, conf, function_problem, patterns
from readtrack.hits import addresses, dimensions, exclusions
from readtrack.store import keys

AT_LEAST_ONE = ("WINDOW_SLICES", "WINDOW_SHARDS", "FLUSH_CHUNK", "FLUSH_TASKS")
PATTERNS = ("BOTS", "NOT_BOTS", "SHARED_PATHS")
FUNCTIONS = ("CONSENT", "IS_BOT", "PREFIX", "READ_QUERYSET", "VIEW_NUMBERS")
FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*", re.ASCII)
COOKIE = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # a token of RFC 6265


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


CHECKS: dict[str, Problems] = {
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
