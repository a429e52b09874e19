"""The settings of readtrack: names, types and defaults of `settings.READTRACK`."""

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, TypeVar

from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.module_loading import import_string

from readtrack.renamed import current_names

Function = TypeVar("Function", bound=Callable[..., Any])
Keys = TypeVar("Keys")
Path = str | PurePath

logger = logging.getLogger("readtrack")
# Windows has no fork. `dict` takes the same keywords, and does nothing.
register_at_fork: Any = getattr(os, "register_at_fork", dict)


# Settings that are dicts. One line for each key, with its comment.
# fmt: off


class Bots(NamedTuple):
    """The keys of BOTS."""

    more: Sequence[str] = ()  # regular expressions: user agents of more robots
    people: Sequence[str] = ()  # regular expressions: user agents of people that would be taken for robots
    function: str = ""  # path of a function (user agent) -> bool that replaces the is-bot package


class Networks(NamedTuple):
    """The keys of NETWORKS."""

    databases: Sequence[Path] = ()  # paths of .mmdb files with AS numbers or countries
    doubtful: Sequence[Path] = ()  # "AS16509", "203.0.113.0/24", paths of lists that operators publish: where programs run, and seldom people's browsers
    address_header: str = "X-Forwarded-For"  # header in which your proxies name the visitor's address, such as "Forwarded" (RFC 7239)
    country_header: str = ""  # header in which a trusted proxy names the visitor's country, e.g. "CF-IPCountry"


class Dots(NamedTuple):
    """The keys of DOTS."""

    form: Literal["bitmap", "sequence"] = "bitmap"  # sequence: 4 bytes a reader, which also tell "3 new"; a model's read_state comes first
    readers: Literal["auto", "id", "ordinal"] = "auto"  # a reader's number: the user id, or an ordinal, by order of coming
    start_as_read: bool = False  # a new account begins with every category read, in place of none
    anonymous: int = 0  # so many anonymous visitors at once have dots, too, by their cookie: such as 1_000_000, of 58 B each in Redis; 0: none
    stale_for: int = 0  # maximum replica or cache lag in seconds; posts published within it stay unread
    queryset: str = ""  # path of a function (request, queryset) -> the rows that the user may see, for JSON


class Cookie(NamedTuple):
    """The keys of COOKIE."""

    name: str = "anon_id"  # name of the cookie; below a script name, that is added: anon_id_shop
    age: int = 31_536_000  # seconds that the cookie lasts (a year)
    path: str = "/"  # path of the cookie: browsers send it with pages below that path
    domain: str = ""  # domain of the cookie, such as "example.com" for all hosts below it; "" for the page's host
    consent: str = ""  # path of a function (request) -> bool: may a cookie be set? Until then hashed as by "hash"


# fmt: on


class Conf:
    """The site's settings, and the defaults of all others.

    They are plain attributes, because each hit looks up about ten of them.
    """

    # One line for each setting, with its comment.
    # fmt: off

    # Redis
    CACHE: str = "default"  # alias in CACHES of a cache in Redis, best one of django-redis
    PREFIX: str = ""  # put before every key where sites share a Redis; or the path of a function () -> tenant's name
    TIMEOUT: float = 0.25  # seconds that a page waits for Redis at most, in all
    PARTITIONS: int = 1  # parts of the keys, each on one server of a Redis Cluster: 16 to 1024; 1 for a single server

    # Views
    WINDOW: int = 1800  # seconds in which further hits of a visitor on a subject are repeats; 0 is one second
    RATE: tuple[int, int] = (5, 10)  # hits of one visitor that count (0: no limit), and in how many seconds from the first

    # Unique visitors
    UNIQUE: str = "hll"  # strategy: hll, set, daily, bitmap or none; a model's unique_strategy comes first

    # Robots, and your own people
    BOTS: Bots = Bots()  # which user agents are those of robots, beside the known ones
    EXCLUDE: Mapping[str, Any] = {}  # views left out: staff, groups, permissions, paths, networks, function; reads: True leaves out reads, too
    NETWORKS: Networks = Networks()  # what proxies and a visitor's network tell: the address, the country, and whether to doubt the visitor
    DEBUG_HEADER: bool = False  # adds X-Readtrack to every response that could count, as DEBUG does

    # Visitors
    ANONYMOUS: Literal["cookie", "hash", "none"] = "cookie"  # hash: no cookie, a new visitor each day; none: no count
    COOKIE: Cookie = Cookie()  # the signed cookie by which anonymous visitors are known
    SECRET: str = ""  # key of the hashes that stand for visitors; "" derives one from SECRET_KEY
    HONOUR_OPT_OUT: bool = True  # visitors with Sec-GPC: 1 or DNT: 1 get no cookie and are hashed as by "hash"
    PROXIES: Literal["auto"] | int | Sequence[str] = "auto"  # how many, or their addresses or networks, the nearest last; auto: a private peer is one

    # Models that are not yours to change
    MODELS: Mapping[str, Any] = {}  # "app.Model" -> {"counted": True, "news_for": ["field"], "news_author": "field", "published_field": "field", "publication_notes": 3, "is_news": "path of a function", "read_state": True or the name of a form}, or some of these, and the keys of parts

    # Unread dots
    DOTS: Dots = Dots()  # what is known of each reader, who has dots, and since when

    # Numbers for editors and authors
    VIEW_NUMBERS: str = ""  # path of a function (user, object, or None for the site) -> bool: may they see its numbers?

    # Flush
    FLUSH_INTERVAL: int = 60  # seconds between two flushes, in readtrack_schedule, too; after three of them a flush is late
    FLUSH_TASKS: int = 1  # tasks of Celery or Django that a flush by the schedule is divided into; at most PARTITIONS
    IDLE_DAYS: int = 30  # days without a view until a subject leaves Redis (not with UNIQUE set or bitmap); 0 is never
    # fmt: on

    def of_part(self, name: str) -> Mapping[str, Any]:
        """Returns the dict of that name in READTRACK, which has the settings of a part.

        It is empty where the site gives none.
        """
        options: Mapping[str, Any] = self.__dict__.get(name) or {}
        return options

    def load(self) -> None:
        """Loads the site's settings. Must run again after each change of READTRACK."""
        self.__dict__.clear()
        for name, given in site_settings().items():
            keys = keys_of(name)
            self.__dict__[name] = with_defaults(given, keys) if keys else given


def site_settings() -> dict[str, Any]:
    """Returns the settings as the site gives them, by their current names."""
    overrides = getattr(settings, "READTRACK", {})
    # A system check reports any other type.
    return current_names(overrides) if isinstance(overrides, dict) else {}


def keys_of(name: str) -> type[Any] | None:
    """Returns the class with the keys of a setting that is a dict of such; None for another one."""
    annotation = TYPES.get(name)
    return annotation if hasattr(annotation, "_fields") else None


def with_defaults(given: Any, keys: Callable[..., Keys]) -> Keys:
    """Returns the values of a setting with such keys, with defaults for those that the site leaves out.

    A check names what is no dict, and keys that do not exist.
    """
    if not isinstance(given, dict):
        return keys()
    known = vars(keys)["_fields"]
    return keys(**{key: value for key, value in given.items() if key in known})


conf = Conf()
_caches: list[tuple[set[str], Any]] = []  # names of settings, and the cache that depends on them


def cached_setting(
    *setting_names: str, maxsize: int | None = 256
) -> Callable[[Function], Function]:
    """Caches a function's results until READTRACK or one of the named settings changes."""

    def decorate(function: Function) -> Function:
        cached: Any = lru_cache(maxsize=maxsize)(function)
        _caches.append(({"READTRACK", *setting_names}, cached))
        return cached  # type: ignore[no-any-return]

    return decorate


@receiver(setting_changed)
def _apply_change(*, setting: str, **kwargs: Any) -> None:
    """Reloads the settings after a change of READTRACK, and clears the caches that depend on it."""
    if setting == "READTRACK":
        conf.load()
    for setting_names, cached in _caches:
        if setting in setting_names:
            cached.cache_clear()


@cached_setting("DEBUG")
def explains_pages() -> bool:
    """Returns True if responses get the header X-Readtrack: with DEBUG, or with DEBUG_HEADER.

    Cached, because to look it up in `settings` takes as long as all that a page without a subject
    needs.
    """
    return settings.DEBUG or conf.DEBUG_HEADER


@cached_setting()
def patterns(name: str) -> tuple[list[re.Pattern[str]], list[tuple[str, str, str]]]:
    """Returns the valid and the invalid regular expressions of the setting, such as "BOTS.more".

    An invalid one is a tuple of the setting, the pattern, and what is wrong with it.
    """
    valid = []
    invalid = []
    for pattern in attrgetter(name)(conf):
        try:
            valid.append(re.compile(pattern, re.IGNORECASE))
        except (re.error, TypeError) as error:
            invalid.append((name, pattern, str(error)))
    return valid, invalid


def function_problem(path: Any) -> str:
    """Returns the reason why a dotted path names no function; "" if it names one."""
    try:
        function = import_string(path)
    # There is no such function, or the value of the setting is no path.
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        return str(error)
    return "" if callable(function) else f"{path} is not callable"


def says_true(name: str, ask: Callable[[], Any], *, otherwise: str) -> bool:
    """Returns True if `ask`, which calls a function of the site, returns True.

    If it raises, the log says that `name` failed, and what happens `otherwise`.
    """
    try:
        # Only True itself, because a coroutine and the text "no" are true as well.
        return ask() is True
    except Exception as error:  # the page is made already
        log_failure(name, otherwise, type(error))
        return False


@cached_setting()
def log_failure(name: str, otherwise: str, error_type: type[Exception]) -> None:
    """Logs the error that is being handled, once for each function and type of error.

    `name` is what failed, and `otherwise` is what happens instead.
    """
    logger.exception("%s failed; %s.", name, otherwise)


# Memory of a reader in the read state of one category (bits), by the form of DOTS.
READER_BITS = {"bitmap": 1, "sequence": 32}
MOST_BITS = 100_000_000  # of the read state of a category, 12.5 MB: one large user id takes no more


def reader_bits() -> int:
    """Returns the memory of a reader in the read state of one category (bits)."""
    return READER_BITS.get(conf.DOTS.form, 1)  # a check names an unknown form


def highest_reader(bits: int) -> int:
    """Returns the highest number of a reader where each reader takes so many bits."""
    return MOST_BITS // bits


TYPES: dict[str, Any] = Conf.__annotations__
DEFAULTS: dict[str, Any] = {name: vars(Conf)[name] for name in TYPES}
