"""Settings that are of their type, but cannot be used."""

import re
from collections.abc import Iterator
from typing import Any

from django.utils.module_loading import import_string

from readtrack import addresses, bots, dimensions
from readtrack.checks.check import Check
from readtrack.conf import conf


def senseless_zeros() -> Iterator[tuple[str]]:
    for name in ("WINDOW_SLICES", "WINDOW_SHARDS", "FLUSH_CHUNK"):
        if getattr(conf, name) == 0:
            yield (name,)


def bad_judges() -> Iterator[tuple[str]]:
    if error := bots.bad_judge():
        yield (error,)


def bad_proxies() -> Iterator[tuple[str]]:
    if error := addresses.bad_proxies():
        yield (error,)


def bad_cookies() -> Iterator[tuple[str]]:
    if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", conf.COOKIE, re.ASCII):
        yield (conf.COOKIE,)


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


CHECKS = (
    Check(
        "readtrack.E014",
        senseless_zeros,
        "READTRACK['{0}'] is 0, and nothing would work.",
        hint="Give it a number from 1 up, or leave it out for the default.",
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
)
