"""History begins on a site that has counted before: with a baseline, and not with a first hour."""

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from readtrack import tracker
from readtrack.flush.run import flush
from readtrack.numbers import beginning, reports
from readtrack.numbers.apps import begin_history
from readtrack.numbers.models import History
from tests.site.models import Post, Product
from tests.support import factories

pytestmark = pytest.mark.django_db


def view(subject: str) -> None:
    assert tracker.record(factories.hit(subject)).counted


def migrated(name: str) -> None:
    """Tells the app, as `migrate` does, that its migration of this name was applied."""
    config = apps.get_app_config("readtrack_numbers")
    migration = MigrationLoader(None).get_migration(*beginning.FIRST)
    migration.name = name
    begin_history(config, using="default", plan=[(migration, False)])


def test_what_was_viewed_before_is_in_no_hour() -> None:
    post = factories.post()
    product = Product.objects.create()
    for subject in (f"site.post:{post.pk}", f"site.post:{post.pk}", f"site.product:{product.pk}"):
        view(subject)
    flush()
    History.objects.all().delete()
    migrated("0001_initial")
    view(f"site.post:{post.pk}")
    flush()
    post.refresh_from_db()
    assert post.view_count == 3
    assert sum(point.views for point in reports.series(post, hours=2)) == 1
    assert sum(point.views for point in reports.series(product, hours=2)) == 0


def test_only_the_first_migration_begins_it() -> None:
    Post.objects.filter(pk=factories.post().pk).update(view_count=5)
    migrated("0002_later")
    assert not History.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_site_whose_tables_are_not_there_yet_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE site_post RENAME TO site_post_away")
    with connection.cursor() as cursor:
        migrated("0001_initial")
        cursor.execute("ALTER TABLE site_post_away RENAME TO site_post")
    assert "History has no baseline" in caplog.text
