"""Makes the client of a cluster out of the site's cache."""

from collections.abc import Sequence
from typing import Any

import redis.cluster
from django.core.signals import setting_changed
from redis import Redis, RedisCluster
from redis.connection import parse_url

from readtrack import parts
from readtrack.cluster.client import ANSWER, Address, Cluster
from readtrack.shipped import NO_CLUSTER
from readtrack.store.caches import options_of_redis_py
from readtrack.store.connection import PATIENCE, UnusableError, limited_pool
from readtrack.store.servers import ServersFactory

# The parser that knows MOVED and ASK. In later versions of redis-py every parser does.
CLUSTER_PARSER = getattr(redis.cluster, "ClusterParser", None)

_cache_clients: dict[str, RedisCluster] = {}  # of caches on a cluster, by URL and options


class ClusterFactory(ServersFactory):
    """`CONNECTION_FACTORY` of a django-redis cache whose LOCATION names servers of a cluster."""

    def connect(self, url: str) -> RedisCluster:
        """Returns the client that the cache itself uses.

        All requests share it, because Django makes a cache for each request.
        """
        name = f"{url} {self.options}"
        if name not in _cache_clients:
            parameters = {**self.make_connection_params(url), **self.pool_cls_kwargs}
            _cache_clients[name] = RedisCluster.from_url(**parameters, require_full_coverage=False)
        return _cache_clients[name]

    def disconnect(self, connection: RedisCluster) -> None:
        """Closes the connections of the cache's client."""
        # After `close`, the client would raise AttributeError.
        connection.disconnect_connection_pools()  # type: ignore[no-untyped-call]

    def servers_of(self, urls: Sequence[str], timeout: float) -> Cluster:
        """Returns our client of the cluster whose servers the URLs name. Raises UnusableError if
        the keys are not divided.
        """
        seeds = []
        for url in urls:
            parsed: Any = parse_url(url)  # type: ignore[no-untyped-call]
            seeds.append((parsed.get("host", "localhost"), parsed.get("port", 6379)))
        return self._cluster(urls[0], seeds, timeout)

    @classmethod
    def servers_like(cls, client: Any, timeout: float) -> Cluster:
        """Returns our client of the cluster that another library's client uses.

        It has the credentials and the TLS options of the other client. Raises UnusableError if the
        keys are not divided.
        """
        options = client.nodes_manager.connection_kwargs
        kept_options = options_of_redis_py(options)
        has_tls = kept_options.pop("ssl", False)
        class_name = getattr(options.get("connection_class"), "__name__", "")
        scheme = "redis"
        if has_tls or "SSL" in class_name:
            scheme = "rediss"
        seeds = [(str(node.host), int(node.port)) for node in client.get_nodes()]
        factory = cls({"CONNECTION_POOL_KWARGS": kept_options})
        return factory._cluster(f"{scheme}://", seeds, timeout)

    def _cluster(self, url: str, seeds: Sequence[Address], timeout: float) -> Cluster:
        """Returns our client of the cluster that has servers at these addresses.

        `url` says how the servers are asked: its scheme, user and password hold for all of them.
        """
        if parts.division().partitions == 1:
            raise UnusableError(NO_CLUSTER)
        is_patient = timeout == PATIENCE

        def client_of(address: Address) -> Redis:
            host, port = address
            pool = limited_pool(self, url, timeout)
            pool.connection_kwargs.update(host=host, port=port)
            if is_patient:
                pool.connection_kwargs.update(socket_timeout=ANSWER, socket_connect_timeout=ANSWER)
            if CLUSTER_PARSER:
                pool.connection_kwargs["parser_class"] = CLUSTER_PARSER
            # A connection that is made, but not connected, finds options of the wrong type.
            pool.connection_class(**pool.connection_kwargs)
            return Redis(connection_pool=pool)

        return Cluster(seeds, client_of, is_patient=is_patient)


def _forget(*, setting: str, **kwargs: object) -> None:
    """Forgets the clients of caches after a change of their settings, which tests make."""
    if setting in {"CACHES", "READTRACK"}:
        _cache_clients.clear()


setting_changed.connect(_forget)
