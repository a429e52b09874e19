"""A Valkey primary with a replica, and the Sentinel that promotes the replica."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redis import Redis, exceptions

from demo_project.engines import private
from demo_project.engines.process import ChildError
from demo_project.engines.valkey import Valkey
from tests.support import caches
from tests.support.waiting import ENOUGH, comes_true

if TYPE_CHECKING:
    from typing_extensions import Self

SERVICE = "readtrack"
DOWN_AFTER = 1000  # milliseconds of silence after which a primary is given up
# What else a Sentinel waits for, in milliseconds. A replica that it has not heard of for five pings
# is none it would promote, and then it asks once a second. TILT is its distrust of a machine that
# is slow, as ours may be.
HASTE = {
    "info-period": 100,
    "ping-period": 400,
    "ask-period": 100,
    "publish-period": 100,
    "tilt-trigger": 60_000,
}
DEMOTED, GIVEN_UP = "+convert-to-slave", "-failover-abort-no-good-slave"  # events
AT_ONCE = {"repl-diskless-sync-delay": "0"}


def wait_until(condition: Callable[[], bool], *, server: Valkey) -> None:
    """Waits until the condition holds. Raises ChildError with the server's last lines if it never
    does.
    """
    if not comes_true(condition):
        raise ChildError(f"In vain, after {ENOUGH} s:\n{server.last_lines()}")


class Sentinel(Valkey):
    """A Sentinel that needs no others to agree."""

    ready = "Sentinel ID is"
    options = ("--sentinel",)

    def __init__(self, primary: Valkey) -> None:
        config = {
            f"sentinel monitor {SERVICE}": f"127.0.0.1 {primary.port} 1",
            f"sentinel auth-pass {SERVICE}": primary.password,
        }
        super().__init__(config=config)

    def start(self) -> None:
        """Starts the Sentinel and waits until it knows the replica."""
        super().start()
        with self.client() as client:
            for name, milliseconds in HASTE.items():
                client.execute_command("SENTINEL", "DEBUG", name, milliseconds)
            # Last, for by its own pace it would not notice an answer in that time.
            client.sentinel_set(SERVICE, "down-after-milliseconds", DOWN_AFTER)
            client.sentinel_set(
                SERVICE, "failover-timeout", 3000
            )  # it tries again after twice that
            wait_until(
                lambda: any(
                    each["master-link-status"] == "ok" for each in client.sentinel_slaves(SERVICE)
                ),
                server=self,
            )

    def _write_config(self) -> Path:
        # A new folder for each start: the Sentinel keeps there what it learns, so its user owns it.
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        path = private.write(folder / "sentinel.conf", self._directives(), reader=self.user)
        self._hand_over(folder)
        return path


class Watched:
    """A primary, its replica and their Sentinel."""

    def __init__(self) -> None:
        self.primary = Valkey(config=AT_ONCE)
        self.replica = Valkey(
            config={**AT_ONCE, "replicaof": f"127.0.0.1 {self.primary.port}"},
            password=self.primary.password,
        )
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
        """Returns the cache of CACHES."""
        return caches.sentinel(
            SERVICE,
            [("127.0.0.1", self.sentinel.port)],
            password=self.primary.password,
            sentinel_password=self.sentinel.password,
        )

    def sync(self) -> None:
        """Waits until the replica has everything that the primary has now.

        WAIT would not do: it waits for the writes of its own connection.
        """
        with self.primary.client() as primary, self.replica.client() as replica:
            offset = primary.info("replication")["master_repl_offset"]
            wait_until(lambda: _offset(replica) >= offset, server=self.replica)

    def detach(self) -> None:
        """Cuts the replica off, so that it lags behind from now on."""
        with self.primary.client() as client:
            client.execute_command("ACL", "SETUSER", "default", "-psync", "-sync")
            client.execute_command("CLIENT", "KILL", "TYPE", "replica")

    @contextmanager
    def announced(self, *names: str) -> Iterator[list[str]]:
        """Waits, at its end, until the Sentinel announces one of those events, and adds its name to
        the list.

        By default it waits until the replica took over.
        """
        with (
            self.sentinel.client(decode_responses=True) as client,
            client.pubsub() as events,
        ):
            events.subscribe(*names or ["+switch-master"])
            for _ in names or [""]:
                events.get_message(
                    timeout=ENOUGH
                )  # of the subscription: from now on nothing is missed
            found: list[str] = []
            yield found
            if (message := events.get_message(timeout=ENOUGH)) is None:
                raise ChildError(f"The Sentinel announced nothing:\n{self.sentinel.last_lines()}")
            found.append(message["channel"])

    def hand_over(self) -> None:
        """Makes the replica the primary, and the primary a replica, while both are well."""
        self.sync()
        done: list[str] = []
        while done != [
            DEMOTED
        ]:  # on a busy machine the Sentinel may find the replica too slow, and give up
            with self.announced(DEMOTED, GIVEN_UP) as done:
                wait_until(self._takes_failover, server=self.sentinel)
        # The Sentinel announces what it asks of the old primary, which takes writes until it has
        # obeyed.
        wait_until(self._primary_has_obeyed, server=self.primary)

    def _primary_has_obeyed(self) -> bool:
        """Tells whether the old primary is a replica now.

        The Sentinel's order ends every connection to it, which may be the one that asks.
        """
        with self.primary.client() as client, suppress(exceptions.ConnectionError):
            role: str = client.info("replication")["role"]
            return role == "slave"
        return False

    def _takes_failover(self) -> bool:
        """Asks the Sentinel for a failover. Returns False if it refuses, for now."""
        with self.sentinel.client() as client, suppress(exceptions.ResponseError):
            return bool(client.execute_command("SENTINEL", "FAILOVER", SERVICE))
        return False


def _offset(replica: Redis) -> int:
    """Returns how far the replica has come; -1 while it is not connected to its primary."""
    told = replica.info("replication")
    return int(told["slave_repl_offset"]) if told.get("master_link_status") == "up" else -1
