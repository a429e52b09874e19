"""Every setting of readtrack: the names, types and defaults of `settings.READTRACK`."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, ParamSpec, TypeVar

from django.conf import settings
from django.core.signals import setting_changed

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Conf:
    """The site's settings over the defaults, as plain attributes: a hit looks up some ten of them."""

    # Where the counts live
    CACHE: str = "default"  # alias in CACHES; has to be a django-redis cache
    PREFIX: str = ""  # put before every key, for a Redis that several sites share
    TEST_PREFIX: str = "test:"  # put before PREFIX while Django's tests run: a live site's keys stay as they are
    TIMEOUT: float = 0.25  # seconds that a page waits for Redis, at most
    CIRCUIT: float = 5.0  # seconds without trying Redis again after it failed

    # What counts as a view
    WINDOW: int = 1800  # seconds in which further hits of a visitor on a subject are repeats; 0 is one second
    RATE_LIMIT: int = 5  # hits of one visitor that count in RATE_WINDOW; 0 is no limit
    RATE_WINDOW: int = 10  # seconds, from the first hit, never extended; 0 is one second
    WINDOW_STORE: Literal["keys", "compact"] = "keys"  # compact: 5 B a view in place of 113, but a window may end late
    WINDOW_SLICES: int = 4  # compact: slices of a window; it ends one slice late, at most
    WINDOW_SHARDS: int = 1_024  # compact: sets of a slice; as many as the views in a WINDOW, divided by 1,000

    # Unique visitors
    UNIQUE: str = "hll"  # how they are counted: hll, set, daily or bitmap; a model's unique_strategy comes first
    UNIQUE_DAYS: int = 0  # days that visitors of any range can be asked for, such as 35; 0 keeps none of it

    # What happened next
    FUNNEL: Sequence[str] = ("view", "click", "convert")  # stages in their order; the first one is a view
    FUNNELS: bool = False  # whether every view enters its subject's funnel; a model's has_funnel comes first
    DIMENSIONS: Sequence[str] = ()  # device, browser, os, country, referrer, or dotted paths of callables
    COUNTRY_HEADER: str = ""  # header in which a trusted proxy names the visitor's country, e.g. "CF-IPCountry"

    # Who is a robot
    BOTS: Sequence[str] = ()  # regular expressions: user agents that are robots, beside those known
    NOT_BOTS: Sequence[str] = ()  # regular expressions: user agents that are people all the same
    IS_BOT: str = ""  # path of a function (user agent) -> bool, asked in place of the is-bot package
    DEBUG_HEADER: bool = False  # X-Readtrack on every response that could count, as with DEBUG

    # Who a visitor is
    ANONYMOUS: Literal["cookie", "hash", "none"] = "cookie"  # hash: no cookie, a new visitor each day; none: no count
    COOKIE: str = "anon_id"  # name of the signed cookie of anonymous visitors
    COOKIE_AGE: int = 31_536_000  # seconds the cookie lives
    SECRET: str = ""  # key of the hashes that stand for visitors; "" derives one from SECRET_KEY
    HONOUR_OPT_OUT: bool = True  # who sends Sec-GPC: 1 or DNT: 1 is given no cookie, and hashed as by "hash"
    PROXY_COUNT: int = 0  # proxies that add to X-Forwarded-For before the site; 0 believes REMOTE_ADDR only
    TRUSTED_PROXIES: Sequence[str] = ()  # those proxies' addresses or networks, one for each, the nearest last

    # Unread dots
    READ_STATE_MODELS: Sequence[str] = ()  # models with read state that no Tracked model points at
    READ_STATE: Literal["bitmap", "sequence"] = "bitmap"  # or "sequence": 4 bytes a reader that also tell "3 new"
    READERS: Literal["auto", "id", "ordinal"] = "auto"  # or "id", "ordinal": their number, or one by order of coming
    MAX_READER: int = 100_000_000  # highest number of a reader (sequence: 1/32 of it): 12.5 MB a category at most
    ANONYMOUS_READERS: bool = False  # whether anonymous visitors have dots too, by their cookie
    STALE_FOR: int = 0  # seconds by which pages may show old rows: lagging replicas, cached fragments
    READ_QUERYSET: str = ""  # path of a function (request, queryset) -> what the user may see, for the JSON views

    # Flush
    FLUSH_INTERVAL: int = 60  # seconds between two flushes by your schedule; later ones are called late
    FLUSH_CHUNK: int = 10_000  # rows in one UPDATE
    FLUSH_RUNS: int = 10_000  # records of past flushes that are kept; a week of one a minute
    ARCHIVE_EVERY: int = 86_400  # seconds after which a full flush also keeps all sketches and breakdowns; 0 is never
    IDLE_DAYS: int = 30  # days without a view after which a subject's keys leave Redis, archived; 0 is never
    ORPHAN_AGE: int = 86_400  # seconds between two flushes that both miss a row, before its keys go

    # History
    HISTORY: bool = True  # keep totals and numbers of readers by the hour, for charts
    HISTORY_DAYS: int = 90  # days that every hour is kept; then one total a day
    HISTORY_YEARS: int = 0  # years that a day is kept; 0 is for ever

    # Moving in
    IMPORT_VIEWS: Mapping[str, Any] = {}  # name of a view that is no DetailView -> "app.Model", with its URL argument

    def load(self) -> None:
        """Takes the site's settings: when Django is ready, and whenever one is overridden."""
        overrides = getattr(settings, "READTRACK", {})
        self.__dict__.clear()
        self.__dict__.update(overrides if isinstance(overrides, dict) else {})  # a system check names anything else


_has_tested = False  # what is left to tell when tests are over is still theirs


def test_prefix() -> str:
    """What keys of tests begin with, those of this process where several run them side by side; "" outside of tests."""
    if not _is_testing() or not conf.TEST_PREFIX:
        return ""
    # By Django's runner or pytest-xdist.
    runner = sys.modules.get("django.test.runner")
    process = os.environ.get("PYTEST_XDIST_WORKER") or str(getattr(runner, "_worker_id", 0) or "")
    return f"{conf.TEST_PREFIX}{process}:" if process else conf.TEST_PREFIX


def _is_testing() -> bool:
    """Whether Django's test environment was set up in this process, by its own runner or pytest's."""
    global _has_tested
    if not _has_tested:
        # Not imported: who serves pages has no use for Django's test tools.
        tools = sys.modules.get("django.test.utils")
        _has_tested = tools is not None and hasattr(tools._TestState, "saved_data")
    return _has_tested


conf = Conf()
_caches: list[tuple[set[str], Any]] = []  # names of settings, and the function that depends on them


def cached_setting(
    *names: str, maxsize: int | None = 256
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Caches the results of a function that depends on READTRACK, or on the named settings of Django besides.

    The cache is cleared when Django reports that one of these settings changed.
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        cached: Any = lru_cache(maxsize=maxsize)(function)
        _caches.append(({"READTRACK", *names}, cached))
        return cached  # type: ignore[no-any-return]

    return decorate


def _apply_change(*, setting: str, **kwargs: Any) -> None:
    if setting == "READTRACK":
        conf.load()
    for names, cached in _caches:
        if setting in names:
            cached.cache_clear()


setting_changed.connect(_apply_change)

TYPES: dict[str, Any] = Conf.__annotations__
DEFAULTS: dict[str, Any] = {name: vars(Conf)[name] for name in TYPES}
