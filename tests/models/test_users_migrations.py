"""The first migration of an app may depend on readtrack's, also that of the app with the users."""

import pytest
from django.conf import settings
from django.db.migrations.loader import MigrationLoader

FIRST = ("readtrack", "0001_initial")


def test_the_first_migration_depends_on_no_other_app() -> None:
    """Otherwise an app of users whose first migration depends on it could not be migrated."""
    loader = MigrationLoader(None)
    needed = loader.graph.forwards_plan(FIRST)
    assert needed == [FIRST]


@pytest.mark.needs_parts("api")
def test_the_table_of_tokens_refers_to_users_in_an_app_of_its_own() -> None:
    loader = MigrationLoader(None)
    users = settings.AUTH_USER_MODEL.partition(".")[0]
    of_tokens = ("readtrack_api", "0001_initial")
    assert users in {app for app, _ in loader.graph.forwards_plan(of_tokens)}
