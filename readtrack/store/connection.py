"""The way to Redis, and the way around it when it is slow or gone."""

import logging
import time
from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Any, ParamSpec, TypeVar, cast

from django.core.cache import caches
from django.core.signals import setting_changed
from django.utils.module_loading import import_string
from django_redis import get_redis_connection
from django_redis.cache import RedisCache
from django_redis.pool import ConnectionFactory
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError as RedisError
from redis.retry import Retry

from readtrack.conf import conf
from readtrack.signals import redis_failed

PATIENCE = 60.0  # seconds that long work, such as a flush, waits for one answer

logger = logging.getLogger("readtrack")

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def connect(*, patient: bool = False) -> Redis:
    """The client of the configured cache's write server, with time-outs of our own."""
    return _client(conf.CACHE, PATIENCE if patient else conf.TIMEOUT)


@lru_cache(maxsize=8)
def _client(alias: str, timeout: float) -> Redis:
    # django-redis shares a pool between all aliases of one URL, time-outs included, so we build
    # ours beside it, by the site's own factory: credentials, TLS and Sentinel stay as configured.
    client = caches[alias].client  # type: ignore[attr-defined]
    factory = client.connection_factory
    if not isinstance(factory, ConnectionFactory):
        return cast(Redis, get_redis_connection(alias, write=True))
    pool = factory.get_connection_pool(factory.make_connection_params(client._server[0]))
    # One retry, and only of a broken connection: redis-py's own default repeats time-outs ten times.
    retry = Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,))
    pool.connection_kwargs.update(
        socket_timeout=timeout, socket_connect_timeout=timeout, retry=retry, decode_responses=False
    )
    return cast(Redis, factory.redis_client_cls(connection_pool=pool, **factory.redis_client_cls_kwargs))


def is_django_redis(backend: str) -> bool:
    """Whether that cache backend has the connections we need; Django's own RedisCache has not."""
    return issubclass(import_string(backend), RedisCache)


class Circuit:
    """Opens when Redis fails; while it is open nobody waits, then one caller tries again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.reset()

    def reset(self) -> None:
        self._opened: float | None = None

    def lets_pass(self) -> bool:
        if self._opened is None:
            return True
        with self._lock:
            if self._opened is None or time.monotonic() - self._opened < conf.CIRCUIT:
                return self._opened is None
            self._opened = time.monotonic()  # this caller tries; the others go on without
            return True

    def open(self, error: Exception) -> None:
        with self._lock:
            was_closed, self._opened = self._opened is None, time.monotonic()
        if was_closed:
            logger.warning("Redis failed, pages go on without it: %s: %s", type(error).__name__, error)
            redis_failed.send_robust(sender=None, error=error)


circuit = Circuit()


def fail_open(
    call: Callable[Arguments, Result], default: Result, *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """What the call gives; `default` when Redis fails or has just failed. For the edges of a request only."""
    if not circuit.lets_pass():
        return default
    try:
        result = call(*args, **kwargs)
    except (RedisError, OSError) as error:
        circuit.open(error)
        return default
    circuit.reset()
    return result


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting in {"CACHES", "READTRACK"}:
        _client.cache_clear()
        circuit.reset()


setting_changed.connect(_forget)
