"""A client of a cluster by which a test names keys as they are without partitions."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from redis import Redis

from readtrack.cluster.client import Address, Cluster
from tests.support.partitions import PlainNames, servers


class PlainNamesInCluster(PlainNames, Cluster):
    """The same for a cluster."""

    @classmethod
    def of(cls, urls: Sequence[str], stack: ExitStack) -> "PlainNamesInCluster":
        """Returns the client, whose connections the stack closes."""

        told = [urlsplit(url) for url in urls]
        password = told[0].password

        def client_of(address: Address) -> Redis:
            host, port = address
            client = Redis(host, port, password=password, decode_responses=True)
            stack.callback(client.close)
            return client

        seeds = [(each.hostname or "", each.port or 0) for each in told]
        return cls(seeds, client_of, is_patient=True)

    def _send(self, *args: Any, **options: Any) -> Any:
        if args[0] in OF_ALL:
            answers = [client.execute_command(*args, **options) for client in servers(self)]
            return OF_ALL[args[0]](answers)
        if args[0] in {"MGET", "DEL", "UNLINK", "EXISTS", "TOUCH"}:
            found = [
                super(PlainNamesInCluster, self)._send(args[0], key, **options) for key in args[1:]
            ]
            return list(chain(*found)) if args[0] == "MGET" else sum(found)
        if args[0] == "MSET":
            for pair in zip(args[1::2], args[2::2], strict=True):
                super()._send("SET", *pair, **options)
            return True
        return super()._send(*args, **options)


def _added_up(answers: Sequence[Any]) -> Any:
    """Returns the sums of what INFO tells: of numbers, also in parts of it."""
    found: dict[str, Any] = {}
    for answer in answers:
        for name, value in answer.items():
            before = found.get(name)
            if isinstance(value, dict) and before:
                found[name] = _added_up([before, value])
            else:
                found[name] = before + value if isinstance(before, int | float) else value
    return found


def _joined(answers: Sequence[Sequence[Any]]) -> list[Any]:
    return list(chain(*answers))


# Commands for all servers, and what their answers are together.
OF_ALL: dict[str, Callable[[Sequence[Any]], Any]] = {
    "CLIENT LIST": _joined,
    "CONFIG RESETSTAT": all,
    "DBSIZE": sum,
    "FLUSHALL": all,
    "FLUSHDB": all,
    "INFO": _added_up,
    "KEYS": _joined,
    "SCRIPT FLUSH": all,
}
