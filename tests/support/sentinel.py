"""A Valkey primary with a replica, and the Sentinel that promotes it once the primary is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redis import Redis

from demo_project.engines.engine import READY_WITHIN
from demo_project.engines.process import ChildError
from demo_project.engines.valkey import Valkey

if TYPE_CHECKING:
    from typing_extensions import Self

SERVICE = "readtrack"
DOWN_AFTER = 1000  # milliseconds of silence after which a primary is given up
# What else a Sentinel waits for, in milliseconds. A replica that it has not heard of for five pings is none it
# would promote, and then it asks once a second. TILT is its distrust of a machine that is slow, as ours may be.
HASTE = {"info-period": 100, "ping-period": 400, "ask-period": 100, "publish-period": 100, "tilt-trigger": 60_000}
AT_ONCE = {"repl-diskless-sync-delay": "0"}


class Sentinel(Valkey):
    """A Sentinel that decides alone."""

    options = ("--sentinel",)

    def __init__(self, primary: Valkey) -> None:
        super().__init__(config={f"sentinel monitor {SERVICE}": f"127.0.0.1 {primary.port} 1"})

    def start(self) -> None:
        """Start it, and wait until it knows the replica."""
        super().start()
        with Redis(port=self.port) as client:
            for name, milliseconds in HASTE.items():
                client.execute_command("SENTINEL", "DEBUG", name, milliseconds)
            # Last, for by its own pace it would not notice an answer in that time.
            client.sentinel_set(SERVICE, "down-after-milliseconds", DOWN_AFTER)
            client.sentinel_set(SERVICE, "failover-timeout", 3000)  # it tries again after twice that
            deadline = time.monotonic() + READY_WITHIN
            while not any(each["master-link-status"] == "ok" for each in client.sentinel_slaves(SERVICE)):
                if time.monotonic() > deadline:
                    raise ChildError(f"The Sentinel knows no replica:\n{self.last_lines()}")
                time.sleep(0.01)

    def _write_config(self) -> Path:
        path = super()._write_config()
        self._hand_over(path)  # it keeps there what it learns
        return path


class Watched:
    """A primary, its replica and their Sentinel."""

    def __init__(self) -> None:
        self.primary = Valkey(config=AT_ONCE)
        self.replica = Valkey(config={**AT_ONCE, "replicaof": f"127.0.0.1 {self.primary.port}"})
        self.sentinel = Sentinel(self.primary)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.primary)
        self._stack.enter_context(self.replica)
        self.sync()
        self._stack.enter_context(self.sentinel)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def cache(self) -> dict[str, Any]:
        """What CACHES needs for it."""
        return {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": f"redis://{SERVICE}/0",
            "OPTIONS": {
                "CLIENT_CLASS": "django_redis.client.SentinelClient",
                "CONNECTION_FACTORY": "django_redis.pool.SentinelConnectionFactory",
                "SENTINELS": [("127.0.0.1", self.sentinel.port)],
            },
        }

    def sync(self) -> None:
        """Wait until the replica has everything."""
        with Redis(port=self.primary.port) as client:
            if not client.wait(1, int(READY_WITHIN * 1000)):
                raise ChildError(f"The replica lags behind:\n{self.replica.last_lines()}")

    def detach(self) -> None:
        """Cut the replica off: from now on it lags behind."""
        with Redis(port=self.primary.port) as client:
            client.execute_command("ACL", "SETUSER", "default", "-psync", "-sync")
            client.execute_command("CLIENT", "KILL", "TYPE", "replica")

    @contextmanager
    def announced(self, event: str = "+switch-master") -> Iterator[None]:
        """Waits, at its end, until the Sentinel announces that; by default, that the replica took over."""
        with Redis(port=self.sentinel.port) as client, client.pubsub() as events:
            events.subscribe(event)
            events.get_message(timeout=READY_WITHIN)  # that we are subscribed: nothing is missed
            yield
            if events.get_message(timeout=READY_WITHIN) is None:
                raise ChildError(f"No {event} of the Sentinel:\n{self.sentinel.last_lines()}")

    def hand_over(self) -> None:
        """Make the replica the primary, and the primary a replica, while both are well."""
        with Redis(port=self.sentinel.port) as client, self.announced("+convert-to-slave"):
            client.execute_command("SENTINEL", "FAILOVER", SERVICE)
