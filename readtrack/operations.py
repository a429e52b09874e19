"""Migration operations for the site's own tables, and for models with another name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.db import router
from django.db.migrations import Migration, RenameModel, SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation

from readtrack import renames
from readtrack.sql import renaming


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
        change = "RESET (fillfactor)"
        if is_forwards:
            change = f"SET (fillfactor = {int(self.percent)})"
        schema_editor.execute(f"ALTER TABLE {schema_editor.quote_name(table)} {change}")

    def describe(self) -> str:
        return f"Set the fillfactor of {self.model_name} to {self.percent}"


class FollowRename(Operation):
    """`FollowRename("blog.Post", "news.Article")` moves the counts, the history and the dots of a
    model to its new name.

    Put it last in the migration by which a model comes to another app. After a `RenameModel` it is
    not needed, because readtrack follows that by itself.
    """

    reduces_to_sql = False

    def __init__(self, before: str, after: str) -> None:
        self.before = before
        self.after = after

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models stay as they are."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._follow(self.before, self.after, schema_editor, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        self._follow(self.after, self.before, schema_editor, from_state)

    def _follow(self, before: str, after: str, schema_editor: Any, state: Any) -> None:
        """Moves what is kept about the model from the label `before` to the label `after`."""
        if getattr(schema_editor, "collect_sql", False):  # `sqlmigrate` only prints statements
            return
        alias = schema_editor.connection.alias
        pks: Iterable[Any] = ()
        # The state may have gone on to a further name by then.
        with suppress(LookupError):
            model = state.apps.get_model(self.after)
            if not self.allow_migrate_model(alias, model) or router.db_for_write(model) != alias:
                return
            pks = model._base_manager.using(alias).values_list("pk", flat=True)
        # Without its tables readtrack has counted nothing yet.
        if renaming.has_tables():
            renames.rename_model(before.lower(), after.lower(), pks=pks, using=alias)

    def describe(self) -> str:
        return f"Move what readtrack has about {self.before} to {self.after}"


def follow_renames(
    sender: Any, *, plan: Sequence[tuple[Migration, bool]] = (), **kwargs: Any
) -> None:
    """Receives pre_migrate, and puts a FollowRename behind each RenameModel of the plan, as
    django.contrib.contenttypes does.
    """
    for migration, _is_backwards in plan:
        operations: list[Operation] = []
        for operation in migration.operations:
            operations.append(operation)
            operations += _follow_ups(operation, migration.app_label)
        migration.operations = operations  # type: ignore[misc]  # which the instance has of its own


def _follow_ups(operation: Operation, app_label: str) -> Iterator[Operation]:
    """Yields a FollowRename for each name of a model that the operation changes."""
    if isinstance(operation, SeparateDatabaseAndState):
        for inner in operation.state_operations:
            yield from _follow_ups(inner, app_label)
    if isinstance(operation, RenameModel):
        before = f"{app_label}.{operation.old_name}"
        yield FollowRename(before, f"{app_label}.{operation.new_name}")
