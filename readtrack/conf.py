"""Every setting of readtrack: the names, types and defaults of `settings.READTRACK`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from django.conf import settings
from django.core.signals import setting_changed


class Conf:
    """The site's settings over the defaults, as plain attributes: a hit looks up some ten of them."""

    # Where the counts live
    CACHE: str = "default"  # alias in CACHES; has to be a django-redis cache
    PREFIX: str = ""  # put before every key, for a Redis that several sites share
    TIMEOUT: float = 0.25  # seconds that a page waits for Redis, at most
    CIRCUIT: float = 5.0  # seconds without trying Redis again after it failed

    # What counts as a view
    WINDOW: int = 1800  # seconds in which further hits of a visitor on a subject are repeats
    RATE_LIMIT: int = 5  # hits of one visitor that count in RATE_WINDOW; 0 is no limit
    RATE_WINDOW: int = 10  # seconds, from the first hit, never extended

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
    CATEGORIES: Sequence[str] = ()  # models with read state that no Tracked model points at
    MAX_READER: int = 100_000_000  # highest user id given a bit: 12.5 MB a category at most

    # Flush
    FLUSH_CHUNK: int = 5_000  # rows in one UPDATE
    FLUSH_RUNS: int = 1_000  # records of past flushes that are kept

    # Moving in
    IMPORT_VIEWS: Mapping[str, Any] = {}  # name of a view that is no DetailView -> "app.Model", with its URL argument

    def load(self) -> None:
        """Takes the site's settings: when Django is ready, and whenever one is overridden."""
        overrides = getattr(settings, "READTRACK", {})
        self.__dict__.clear()
        self.__dict__.update(overrides if isinstance(overrides, dict) else {})  # a system check names anything else


def _reload(*, setting: str, **kwargs: Any) -> None:
    if setting == "READTRACK":
        conf.load()


conf = Conf()
setting_changed.connect(_reload)

TYPES: dict[str, Any] = Conf.__annotations__
DEFAULTS: dict[str, Any] = {name: vars(Conf)[name] for name in TYPES}
