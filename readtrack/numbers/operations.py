"""The migration operation for the table of history."""

from typing import Any

from readtrack import buckets
from readtrack.numbers.sql import history_months
from readtrack.operations import PostgreSQLOperation


class PartitionHistory(PostgreSQLOperation):
    """`PartitionHistory()` divides readtrack's table of history by month, for sites with many
    millions of rows.

    PostgreSQL then drops old months as a whole, and reads only the months that a query asks for.
    The flush adds the months to come. With `atomic = False` in the migration neither pages nor
    flushes wait, however large the table is. On other databases the operation does nothing. It
    cannot be reversed: Django raises IrreversibleError.
    """

    app_label = "readtrack_numbers"
    model_name = "History"
    reversible = False

    def apply(self, schema_editor: Any, table: str, **kwargs: Any) -> None:
        history_months.divide(schema_editor.connection, at=buckets.now())

    def describe(self) -> str:
        return "Divide history by month"
