"""Row-level security, by which PostgreSQL hides rows from a role, or keeps the role from changing
them.

A row that it hides looks like a deleted one, and a row that must not be changed like a locked one.
"""

from django.db import Error, connections, router
from django.db.models import Model

# A table that does not exist has no identity, and then the answer is NULL.
IS_ACTIVE = "SELECT row_security_active(to_regclass(%s))"


class RowSecurityError(Error):
    """Row-level security may hide rows from the flush, or keep it from changing them."""


def refusal(*models: type[Model]) -> RowSecurityError | None:
    """Returns an error that says which role may not see all rows of these models, which are in one
    database; None if it sees them.

    A policy that lets the role see everything is not recognised: the database does not tell.
    """
    connection = connections[router.db_for_write(models[0])]
    if connection.vendor != "postgresql":
        return None
    tables: dict[str, None] = {}
    for model in models:
        for ancestor in (model, *model._meta.get_parent_list()):
            tables[ancestor._meta.db_table] = None
    names = [connection.ops.quote_name(table) for table in tables]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([IS_ACTIVE] * len(names)), names)
        if not any(is_active for [is_active] in cursor.fetchall()):
            return None
        cursor.execute("SELECT current_user")
        [role] = cursor.fetchone()
    return RowSecurityError(
        f"row-level security of {', '.join(tables)} hides rows from the role {role},"
        " or keeps it from changing them."
    )
