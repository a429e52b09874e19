"""The channel of Redis to which each publication is told as it happens, while a part listens.

The scripts of a publication send the key with its time, and that time.
"""

from redis import Redis

from readtrack import parts
from readtrack.conf import conf
from readtrack.store import keys
from readtrack.store.cluster import Cluster
from readtrack.store.connection import connect


def channel() -> str:
    """Returns the name of the site's channel; "" while no part listens.

    Tenants share it. It has the number of the database, because PUBLISH reaches all databases.
    """
    if not parts.any_hears_publications():
        return ""
    prefix = "" if keys.tenant_function() else conf.PREFIX
    client = connect()
    database = 0 if isinstance(client, Cluster) else _database_of(client)
    return f"{keys.test_prefix()}{prefix}events:{database}"


def _database_of(client: Redis) -> int:
    return int(client.connection_pool.connection_kwargs.get("db") or 0)
