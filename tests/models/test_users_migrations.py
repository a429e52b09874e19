"""The first migration of an app may depend on readtrack's, also that of the app with the users."""

from django.conf import settings
from django.db.migrations.loader import MigrationLoader

FIRST = ("readtrack", "0001_initial")


def test_the_first_migration_depends_on_no_other_app() -> None:
    """Otherwise an app of users whose first migration depends on it could not be migrated."""
    loader = MigrationLoader(None)
    needed = loader.graph.forwards_plan(FIRST)
    assert needed == [FIRST]
    # The table of the API's tokens refers to users, so it is in an app of its own.
    users = settings.AUTH_USER_MODEL.partition(".")[0]
    of_tokens = ("readtrack_api", "0001_initial")
    assert users in {app for app, _ in loader.graph.forwards_plan(of_tokens)}
