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

Function = TypeVar("Function", bound=Callable[..., Any])
Keys = TypeVar("Keys")
Path = str | PurePath

logger = logging.getLogger("readtrack")
# Windows has no fork. `dict` takes the same keywords, and does nothing.
register_at_fork: Any = getattr(os, "register_at_fork", dict)


class Bots(NamedTuple):
    """The keys of BOTS."""

    #: Regular expressions: user agents of more robots.
    more: Sequence[str] = ()
    #: Regular expressions: user agents of people that would be taken for robots.
    people: Sequence[str] = ()
    #: Path of a function (user agent) -> bool that replaces the is-bot package.
    function: str = ""


class Dots(NamedTuple):
    """The keys of DOTS."""

    #: "sequence" takes 4 bytes a reader, and also tells "3 new"; a model's read_state comes first.
    form: Literal["bitmap", "sequence"] = "bitmap"
    #: A reader's number: the user id, or an ordinal, by order of coming.
    readers: Literal["auto", "id", "ordinal"] = "auto"
    #: A new account begins with every category read, in place of none.
    start_as_read: bool = False
    #: So many anonymous visitors at once have dots, too, by their cookie, such as 1_000_000; each
    #: takes 58 B in Redis. 0: none.
    anonymous: int = 0
    #: Maximum replica or cache lag in seconds; posts published within it stay unread.
    stale_for: int = 0


class Cookie(NamedTuple):
    """The keys of COOKIE."""

    #: Name of the cookie; below a script name, that is added: anon_id_shop.
    name: str = "anon_id"
    #: Seconds that the cookie lasts (a year).
    age: int = 31_536_000
    #: Path of the cookie: browsers send it with pages below that path.
    path: str = "/"
    #: Domain of the cookie, such as "example.com" for all hosts below it; "" for the page's host.
    domain: str = ""
    #: Path of a function (request) -> bool: may a cookie be set? Until then hashed as by "hash".
    consent: str = ""


class Conf:
    """The site's settings, and the defaults of all others.

    They are plain attributes, because each hit looks up about ten of them.
    """

    # Redis

    #: Alias in CACHES of a cache in Redis, best one of django-redis.
    CACHE: str = "default"
    #: Put before every key where sites share a Redis; or the path of a function () -> tenant's
    #: name.
    PREFIX: str = ""
    #: Seconds that a page waits for Redis at most, in all.
    TIMEOUT: float = 0.25

    # Views

    #: Seconds in which further hits of a visitor on a subject are repeats; 0 is one second.
    WINDOW: int = 1800
    #: Hits of one visitor that count (0: no limit), and in how many seconds from the first.
    RATE: tuple[int, int] = (5, 10)

    # Unique visitors

    #: Strategy: hll, set, daily, bitmap or none; a model's unique_strategy comes first.
    UNIQUE: str = "hll"

    # Robots, and your own people

    #: Which user agents are those of robots, beside the known ones.
    BOTS: Bots = Bots()
    #: Views left out: staff, groups, permissions, paths, networks, function; reads: True leaves out
    #: reads, too.
    EXCLUDE: Mapping[str, Any] = {}
    #: Adds X-Readtrack to every response that could count, as DEBUG does.
    DEBUG_HEADER: bool = False

    # Visitors

    #: "hash" sets no cookie, and makes a new visitor each day; "none" counts no anonymous visitor.
    ANONYMOUS: Literal["cookie", "hash", "none"] = "cookie"
    #: The signed cookie by which anonymous visitors are known.
    COOKIE: Cookie = Cookie()
    #: Key of the hashes that stand for visitors; "" derives one from SECRET_KEY.
    SECRET: str = ""
    #: Visitors with Sec-GPC: 1 or DNT: 1 get no cookie and are hashed as by "hash".
    HONOUR_OPT_OUT: bool = True
    #: How many, or their addresses or networks, the nearest last; auto: a private peer is one.
    PROXIES: Literal["auto"] | int | Sequence[str] = "auto"
    #: Header in which your proxies name the visitor's address, such as "Forwarded" (RFC 7239).
    ADDRESS_HEADER: str = "X-Forwarded-For"

    # Models that are not yours to change

    #: "app.Model" -> {"counted": True, "news_for": ["field"], "news_author": "field", "is_news":
    #: "path of a function", "read_state": True or the name of a form}, or some of these, and the
    #: keys of parts.
    MODELS: Mapping[str, Any] = {}

    # Unread dots

    #: What is known of each reader, who has dots, and since when.
    DOTS: Dots = Dots()

    # Numbers for editors and authors

    #: Path of a function (user, object, or None for the site) -> bool that says who may see its
    #: numbers.
    VIEW_NUMBERS: str = ""

    # Flush

    #: Seconds between two flushes, in readtrack_schedule, too; after three of them a flush is late.
    FLUSH_INTERVAL: int = 60
    #: Days without a view until a subject leaves Redis (not with UNIQUE set or bitmap); 0 is never.
    IDLE_DAYS: int = 30

    def of_part(self, name: str) -> Mapping[str, Any]:
        """Returns the dict called `name` in READTRACK, which has the settings of a part.

        It is empty where the site gives none.
        """
        options: Mapping[str, Any] = getattr(self, name, None) or {}
        return options

    def load(self) -> None:
        """Loads the site's settings. Must run again after each change of READTRACK."""
        self.__dict__.clear()
        for name, value in site_settings().items():
            class_of_keys = key_class(name)
            if class_of_keys is not None:
                value = with_defaults(value, class_of_keys)
            self.__dict__[name] = value


def site_settings() -> dict[str, Any]:
    """Returns the settings as the site gives them."""
    overrides = getattr(settings, "READTRACK", {})
    if not isinstance(overrides, dict):  # a system check reports it
        return {}
    return overrides


def key_class(name: str) -> type[Any] | None:
    """Returns the class with the keys of a setting that is a dict, such as Dots of "DOTS"; None for
    a setting that is no dict.
    """
    annotation = ANNOTATIONS.get(name)
    if not hasattr(annotation, "_fields"):
        return None
    return annotation


def with_defaults(site_values: Any, class_of_keys: Callable[..., Keys]) -> Keys:
    """Returns the values of a setting that is a dict, with defaults for the keys that the site
    leaves out.

    A check names what is no dict, and keys that do not exist.
    """
    if not isinstance(site_values, dict):
        return class_of_keys()
    fields = vars(class_of_keys)["_fields"]
    values = {key: value for key, value in site_values.items() if key in fields}
    return class_of_keys(**values)


conf = Conf()
# Names of settings, and the function that forgets what depends on them.
_forgetting: list[tuple[set[str], Callable[[], object]]] = []


def after_change(*setting_names: str) -> Callable[[Function], Function]:
    """Calls a function after each change of READTRACK or of one of the named settings.

    It forgets what depends on them.
    """

    def decorate(function: Function) -> Function:
        _forgetting.append(({"READTRACK", *setting_names}, function))
        return function

    return decorate


def cached_setting(
    *setting_names: str, maxsize: int | None = 256
) -> Callable[[Function], Function]:
    """Caches a function's results until READTRACK or one of the named settings changes."""

    def decorate(function: Function) -> Function:
        cached: Any = lru_cache(maxsize=maxsize)(function)
        after_change(*setting_names)(cached.cache_clear)
        return cached  # type: ignore[no-any-return]

    return decorate


@receiver(setting_changed)
def _apply_change(*, setting: str, **kwargs: Any) -> None:
    """Reloads the settings after a change of READTRACK, and forgets what depends on the setting."""
    if setting == "READTRACK":
        conf.load()
    for setting_names, forget in _forgetting:
        if setting in setting_names:
            forget()


@cached_setting("DEBUG")
def explains_pages() -> bool:
    """Returns True if responses get the header X-Readtrack: with DEBUG, or with DEBUG_HEADER.

    Cached, because to look it up in `settings` takes as long as all that a page without a subject
    needs.
    """
    return settings.DEBUG or conf.DEBUG_HEADER


class InvalidPattern(NamedTuple):
    """A regular expression of the site that cannot be compiled."""

    pattern: str
    problem: str


class Patterns(NamedTuple):
    """The regular expressions of a setting."""

    valid: list[re.Pattern[str]]
    invalid: list[InvalidPattern]


@cached_setting()
def patterns(name: str) -> Patterns:
    """Returns the regular expressions of the setting, such as "BOTS.more"."""
    valid = []
    invalid = []
    for pattern in attrgetter(name)(conf):
        try:
            valid.append(re.compile(pattern, re.IGNORECASE))
        except (re.error, TypeError) as error:
            invalid.append(InvalidPattern(pattern, str(error)))
    return Patterns(valid, invalid)


def function_problem(path: Any) -> str:
    """Returns the reason why a dotted path names no function; "" if it names one."""
    try:
        function = import_string(path)
    # There is no such function, or the value of the setting is no path.
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        return str(error)
    if not callable(function):
        return f"{path} is not callable"
    return ""


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


ANNOTATIONS: dict[str, Any] = Conf.__annotations__
DEFAULTS: dict[str, Any] = {name: vars(Conf)[name] for name in ANNOTATIONS}
