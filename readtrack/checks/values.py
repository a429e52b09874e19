"""Checks of READTRACK itself: unknown settings, wrong types, values that cannot be used."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, Union, get_args, get_origin

from django.conf import settings

from readtrack.checks import Check, problem_if
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

TYPE_CHECKS = {
    "readtrack.E001": Check(
        lambda: problem_if(not isinstance(given := getattr(settings, "READTRACK", {}), dict), type(given).__name__),
        "READTRACK is of the type {}, not a dict.",
        hint="Set READTRACK = {{}} for the defaults.",
    ),
    "readtrack.E002": Check(
        wrong_types, "READTRACK['{0}'] is {2!r}.", hint="Give it {1}, or leave it out for the default."
    ),
    "readtrack.W003": Check(unknown_settings, "READTRACK has no setting '{0}'.", hint="Did you mean: {1}?"),
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


CHECKS = {
    "readtrack.E014": Check(
        lambda: [(name,) for name in AT_LEAST_ONE if getattr(conf, name) == 0],
        "READTRACK['{0}'] is 0, and nothing would work.",
        hint="Give it a number from 1 up, or leave it out for the default.",
    ),
    "readtrack.E042": Check(
        lambda: problem_if(conf.PARTITIONS != 1 and not 16 <= conf.PARTITIONS <= 1024, conf.PARTITIONS),
        "READTRACK['PARTITIONS'] is {0}.",
        hint="Give it 1 for a single Redis, or for a cluster a number from 16 to 1024, such as 64.",
    ),
    "readtrack.E043": Check(
        lambda: problem_if(conf.FLUSH_TASKS > conf.PARTITIONS, conf.FLUSH_TASKS, conf.PARTITIONS),
        "READTRACK['FLUSH_TASKS'] is {0}, and there are no more partitions than {1}.",
        hint="Give it {1} at most: each task flushes some of the partitions.",
    ),
    "readtrack.E020": Check(
        lambda: [bad for name in PATTERNS for bad in patterns(name)[1]],
        "READTRACK['{0}'] has {1!r}, which is no regular expression: {2}.",
        hint="Correct it. Escape special characters, as re.escape does. Until then the pattern is ignored.",
    ),
    "readtrack.E022": Check(
        lambda: problem_if(error := addresses.bad_proxies(), error),
        "READTRACK['PROXY_COUNT'] and ['TRUSTED_PROXIES'] cannot be used: {0}",
        hint="Give addresses such as '10.0.0.1' or networks such as '10.0.0.0/8'. Until then REMOTE_ADDR is used.",
    ),
    "readtrack.E023": Check(
        lambda: problem_if(not COOKIE.fullmatch(conf.COOKIE), conf.COOKIE),
        "READTRACK['COOKIE'] is {0!r}, which cannot be the name of a cookie.",
        hint="Use letters, digits, - and _. To set no cookie at all, use READTRACK['ANONYMOUS'] = 'hash'.",
    ),
    "readtrack.E027": Check(
        lambda: problem_if(not FILE.fullmatch(conf.SCRIPT), conf.SCRIPT),
        "READTRACK['SCRIPT'] is {0!r}, which cannot be the end of an address.",
        hint="Use letters, digits, '.', - and _, such as 'page.js'.",
    ),
    "readtrack.E032": Check(
        lambda: problem_if(not conf.FUNNEL or len(set(conf.FUNNEL)) < len(conf.FUNNEL), conf.FUNNEL),
        "READTRACK['FUNNEL'] is {0!r}: it needs at least one stage, and each stage only once.",
        hint="Name the stages in their order, such as ['view', 'click', 'convert'].",
    ),
    "readtrack.E033": Check(
        unusable_dimensions,
        "READTRACK['DIMENSIONS'] names '{0}': {1}.",
        hint="Name device, browser, os, country, referrer, or the dotted path of a callable that takes the request.",
    ),
    "readtrack.E026": Check(
        lambda: exclusions.rules().problems,
        "READTRACK['EXCLUDE'] has {0!r}: {1!r}, which leaves out nothing.",
        hint="Give 'staff': True; lists of names in 'groups', of 'app.codename' in 'permissions', of regular "
        "expressions in 'paths', of addresses in 'networks'; and in 'function' the path of a function (request).",
    ),
    "readtrack.E040": Check(
        lambda: problem_if(conf.ANONYMOUS_READERS and conf.READERS == "id"),
        "READTRACK['READERS'] = 'id' has no numbers for anonymous visitors, but ANONYMOUS_READERS is on.",
        hint="Set READTRACK['READERS'] to 'auto' or 'ordinal'.",
    ),
    "readtrack.E041": Check(
        unusable_functions,
        "READTRACK['{0}'] names '{1}', which is no function: {2}.",
        hint="Give the path of a function: IS_BOT takes a user agent and returns True for a robot; READ_QUERYSET takes "
        "(request, queryset) and returns the rows which the user may see; VIEW_NUMBERS takes (user, object), where "
        "None is the whole site, and returns True for those who may see its numbers; CONSENT takes (request) and "
        "returns True once a cookie may be set, until then none is; PREFIX takes nothing and returns the tenant's "
        "name, and a prefix that is no path ends with a colon, such as '{1}:'.",
    ),
}
