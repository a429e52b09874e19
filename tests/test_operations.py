"""The migration operation for the site's own table."""

import pytest
from django.apps import apps
from django.db import connections
from django.db.migrations.state import ProjectState
from pytest_django import Settings

from readtrack.operations import SetFillfactor

pytestmark = pytest.mark.django_db(databases=["default", "lite"], transaction=True)


def options() -> list[str] | None:
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = 'site_post'")
        found: list[str] | None = cursor.fetchone()[0]
        return found


@pytest.mark.skipif(connections["default"].vendor != "postgresql", reason="PostgreSQL's own")
def test_the_fillfactor_is_set_and_taken_back() -> None:
    operation, state = SetFillfactor("Post", 70), ProjectState.from_apps(apps)
    with connections["default"].schema_editor() as editor:
        operation.database_forwards("site", editor, state, state)
    assert options() == ["fillfactor=70"]
    with connections["default"].schema_editor() as editor:
        operation.database_backwards("site", editor, state, state)
    assert options() is None


@pytest.mark.needs_parts("numbers")
def test_other_databases_and_the_models_are_left_alone() -> None:
    from readtrack.numbers.operations import PartitionHistory

    operation, state = SetFillfactor("Post"), ProjectState.from_apps(apps)
    with connections["lite"].schema_editor() as editor:
        operation.database_forwards("site", editor, state, state)
        PartitionHistory().database_forwards(
            "site", editor, ProjectState(), ProjectState()
        )  # before ours is migrated
    operation.state_forwards("site", state)
    assert operation.describe() == "Set the fillfactor of Post to 80"
    assert operation.deconstruct() == ("SetFillfactor", ("Post",), {})


class Nowhere:
    """A router by which no table is anywhere."""

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool:
        return False


@pytest.mark.skipif(connections["default"].vendor != "postgresql", reason="PostgreSQL's own")
def test_a_table_that_is_in_another_database_is_left_alone(settings: Settings) -> None:
    settings.DATABASE_ROUTERS = [Nowhere()]
    state = ProjectState.from_apps(apps)
    with connections["default"].schema_editor() as editor:
        SetFillfactor("Post", 70).database_forwards("site", editor, state, state)
    assert options() is None
