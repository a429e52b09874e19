"""Several servers in the place of one Redis, such as those of a cluster. The client is a part's."""

from collections.abc import Callable, Sequence
from typing import Any

from django_redis.pool import ConnectionFactory
from redis import Redis

from readtrack.store.pools import Command

# Returns one server's answers: see `SeveralServers.spread`.
Ask = Callable[[Redis, Sequence[Command], Callable[[], None]], Sequence[Any]]


class SeveralServers(Redis):
    """A client that sends each command to the server of its keys."""

    def clients(self) -> list[Redis]:
        """Returns a client of each server that holds keys. Raises SilentError if none answers."""
        raise NotImplementedError

    def spread(self, commands: Sequence[Command], ask: Ask) -> list[Any]:
        """Returns the answer to each command. If a command fails, its answer is the error.

        `ask` takes a client of a server, the commands for that server, and a function `meanwhile`.
        It sends the commands, then calls `meanwhile`, then reads the answers. `meanwhile` does the
        same with the next server, so that all commands are sent before any answer is read.
        """
        raise NotImplementedError

    def scan_of(self, names: Sequence[str]) -> Any:
        """Returns the cursor by which a scan of the servers that have these keys begins."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """Closes the connections to all servers that nobody uses."""
        raise NotImplementedError


class ServersFactory(ConnectionFactory):  # type: ignore[misc]
    """A `CONNECTION_FACTORY` of a django-redis cache. LOCATION names some of its servers."""

    def servers_of(self, urls: Sequence[str], timeout: float) -> SeveralServers:
        """Returns readtrack's client of all servers, of which these URLs name some. It waits
        `timeout` seconds for an answer. Raises UnusableError if the settings cannot be used.
        """
        raise NotImplementedError

    @classmethod
    def servers_like(cls, client: Any, timeout: float) -> SeveralServers:
        """Returns readtrack's client of the servers that another library's client uses."""
        raise NotImplementedError
