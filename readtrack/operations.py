"""Migration operations for the site's own tables."""

from typing import Any

from django.apps import apps
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from readtrack import buckets
from readtrack.sql import partitions


class SetFillfactor(Operation):
    """`SetFillfactor("Post")` leaves room in each page of the table, so that a flush moves no row and no index.

    PostgreSQL then updates counts in place (heap-only tuples), three times as fast, as long as no index has
    `view_count` or `visitor_count` in it. It holds for pages written from now on; `VACUUM FULL` or
    `pg_repack` rewrites the others. Other databases have nothing like it, and are left alone.
    """

    def __init__(self, model_name: str, percent: int = 80) -> None:
        self.model_name = model_name
        self.percent = percent

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """The models stay as they are."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        self._set(app_label, schema_editor, to_state, f"SET (fillfactor = {int(self.percent)})")

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        self._set(app_label, schema_editor, to_state, "RESET (fillfactor)")

    def _set(self, app_label: str, schema_editor: Any, state: ProjectState, change: str) -> None:
        model = state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor == "postgresql" and self.allow_migrate_model(
            schema_editor.connection.alias, model
        ):
            schema_editor.execute(f"ALTER TABLE {schema_editor.quote_name(model._meta.db_table)} {change}")

    def describe(self) -> str:
        return f"Set the fillfactor of {self.model_name} to {self.percent}"


class PartitionHistory(Operation):
    """`PartitionHistory()` divides readtrack's table of history by month, for sites with many millions of rows.

    PostgreSQL then drops old months as a whole, and looks for hours in few of them. The flush adds the months to come.
    With `atomic = False` in the migration neither pages nor flushes wait, however large the table is. Other databases
    are left alone.
    """

    atomic = False

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """The models stay as they are."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if self._applies(schema_editor.connection):
            partitions.divide(schema_editor.connection, at=buckets.now())

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if self._applies(schema_editor.connection):
            partitions.unite(schema_editor.connection)

    def _applies(self, connection: Any) -> bool:
        history = apps.get_model("readtrack", "History")
        return connection.vendor == "postgresql" and bool(self.allow_migrate_model(connection.alias, history))

    def describe(self) -> str:
        return "Divide history by month"
