"""The channel of Redis to which each publication is told as it happens, while a part listens.

The scripts of a publication send the key with its time, and that time.
"""

from readtrack import parts
from readtrack.conf import conf
from readtrack.store import keys
from readtrack.store.connection import connect
from readtrack.store.servers import SeveralServers


def channel() -> str:
    """Returns the name of the site's channel; "" while no part listens.

    Tenants share it. It has the number of the database, because PUBLISH reaches all databases.
    """
    if not any(part.hears_publications() for part in parts.installed()):
        return ""
    prefix = ""
    if not keys.tenant_function():
        prefix = conf.PREFIX
    return f"{keys.test_prefix()}{prefix}events:{_database()}"


def _database() -> int:
    """Returns the number of the database in Redis; 0 for a cluster, which has only that."""
    client = connect()
    if isinstance(client, SeveralServers):
        return 0
    return int(client.connection_pool.connection_kwargs.get("db") or 0)
