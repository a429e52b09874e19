"""Migration operations for the site's own tables."""

from collections.abc import Callable
from typing import Any

from django.db.migrations.operations.base import Operation

from readtrack import buckets
from readtrack.sql import history_months


class PostgreSQLOperation(Operation):
    """An operation on a table that changes neither the models nor other databases."""

    app_label = ""  # of the model, if it is in another app than the migration
    model_name: str
    apply: Callable[..., None]  # changes the table, or reverses the change

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models stay as they are."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: Any,
        from_state: Any,
        to_state: Any,
        *,
        is_forwards: bool = True,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        model = to_state.apps.get_model(self.app_label or app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            self.apply(schema_editor, model._meta.db_table, is_forwards=is_forwards)

    def database_backwards(self, *args: Any) -> None:
        self.database_forwards(*args, is_forwards=False)


class SetFillfactor(PostgreSQLOperation):
    """`SetFillfactor("Post")` leaves room in each page of the table, so that a flush moves no row
    and no index.

    PostgreSQL then updates counts in place (heap-only tuples), three times as fast, as long as no
    index has `view_count` or `visitor_count` in it. The setting applies to pages that are written
    from now on; `VACUUM FULL` or `pg_repack` rewrites the existing pages. On other databases the
    operation does nothing.
    """

    def __init__(self, model_name: str, percent: int = 80) -> None:
        self.model_name = model_name
        self.percent = percent

    def apply(self, schema_editor: Any, table: str, *, is_forwards: bool) -> None:
        change = f"SET (fillfactor = {int(self.percent)})" if is_forwards else "RESET (fillfactor)"
        schema_editor.execute(f"ALTER TABLE {schema_editor.quote_name(table)} {change}")

    def describe(self) -> str:
        return f"Set the fillfactor of {self.model_name} to {self.percent}"


class PartitionHistory(PostgreSQLOperation):
    """`PartitionHistory()` divides readtrack's table of history by month, for sites with many
    millions of rows.

    PostgreSQL then drops old months as a whole, and reads only the months that a query asks for.
    The flush adds the months to come. With `atomic = False` in the migration neither pages nor
    flushes wait, however large the table is. On other databases the operation does nothing. It
    cannot be reversed: Django raises IrreversibleError.
    """

    app_label = "readtrack"
    model_name = "History"
    reversible = False

    def apply(self, schema_editor: Any, table: str, **kwargs: Any) -> None:
        history_months.divide(schema_editor.connection, at=buckets.now())

    def describe(self) -> str:
        return "Divide history by month"
