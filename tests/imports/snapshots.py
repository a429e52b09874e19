"""A snapshot of Redis, to go back to."""

from typing import Any

from redis import Redis


class Snapshot:
    """The present data of Redis."""

    def __init__(self, redis: Redis) -> None:
        client: Any = redis
        self._redis, self._values = redis, {key: client.dump(key) for key in client.keys("*")}

    def restore(self) -> None:
        """Replaces the data of Redis by the snapshot."""
        self._redis.flushdb()
        for key, value in self._values.items():
            self._redis.restore(key, 0, value)
