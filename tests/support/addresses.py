"""The addresses of the tests' servers, with their passwords, for processes that tests start."""

from django.db import connection
from redis import VERSION, Redis

# Behind the URL of a server that knows no HELLO. redis-py before 5 sends none.
RESP2 = "?protocol=2" if VERSION >= (5,) else ""


def database_url() -> str:
    """Returns the URL of the database that this test uses, on a server."""
    options = connection.settings_dict
    login = f"{options['USER']}:{options['PASSWORD']}"
    return f"{connection.vendor}://{login}@{options['HOST']}:{options['PORT']}/{options['NAME']}"


def redis_url_of(client: Redis, *, database: int) -> str:
    """Returns the URL of a database of the client's server."""
    told = client.connection_pool.connection_kwargs
    password = told.get("password") or ""
    return f"redis://:{password}@{told['host']}:{told['port']}/{database}"
