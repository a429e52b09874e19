"""Removing from Redis what it holds of a tenant that is gone."""

from collections.abc import Iterator
from typing import Any

from django.db import connections, transaction
from django.db.models import Model

from readtrack.conf import logger
from readtrack.progress import Progress, no_progress
from readtrack.store import keys, scanning
from readtrack.store.circuit import fail_open


def keys_of_tenant(tenant: str, progress: Progress = no_progress) -> Iterator[list[str]]:
    """Yields the names of readtrack's keys of that tenant, as `scanning.key_batches` does. Other
    keys that begin with the tenant's name, such as those of its cache, are left out.
    """
    beginning = keys.prefix_of(tenant)
    for key_names in scanning.key_batches("*", progress, beginning=beginning):
        names_of_tenant = []
        for name in key_names:
            row, _pieces = keys.parse(name, beginning=beginning)
            if row is not None:
                names_of_tenant.append(name)
        yield names_of_tenant


def forget_tenant(tenant: str, progress: Progress = no_progress) -> int:
    """Removes every key of that tenant. Returns how many there were. Raises redis.RedisError."""
    return sum(scanning.unlink(key_names) for key_names in keys_of_tenant(tenant, progress))


def on_tenant_gone(sender: type[Model], instance: Any, *, using: str, **kwargs: Any) -> None:
    """Receives post_delete of a tenant. If its schema is gone on commit, too, it removes the
    tenant's keys: a later tenant may get the same schema.
    """
    schema = str(getattr(instance, "schema_name", ""))
    if not schema or keys.tenant_function() is None:
        return

    def forget() -> None:
        if _has_schema(schema, using=using):
            return
        if fail_open(forget_tenant, None, schema) is None:
            logger.error("Redis failed. Later run: readtrack forget-tenant %s", schema)

    transaction.on_commit(forget, using=using, robust=True)


def _has_schema(schema: str, *, using: str) -> bool:
    """Returns True if the database has a schema of that name."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema])
        return cursor.fetchone() is not None
