"""A Redis that loses its latest data, as one does that comes back with an older dump."""

from typing import Any

from redis import Redis


class Snapshot:
    """What Redis holds now."""

    def __init__(self, redis: Redis) -> None:
        client: Any = redis
        self._redis, self._values = redis, {key: client.dump(key) for key in client.keys("*")}

    def restore(self) -> None:
        """Makes Redis hold that again, and nothing else."""
        self._redis.flushdb()
        for key, value in self._values.items():
            self._redis.restore(key, 0, value)
