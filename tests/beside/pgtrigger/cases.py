"""A row that a trigger of django-pgtrigger keeps, though Django says it is deleted, keeps its counts."""

from collections.abc import Iterator

import pgtrigger
import pytest
from redis import Redis

from readtrack import reports
from readtrack.flush.run import flush
from tests.site.models import Article
from tests.support.counts import live
from tests.support.counts import view_times as view

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def soft_delete() -> Iterator[None]:
    trigger = pgtrigger.SoftDelete(name="hide", field="is_published")
    trigger.install(Article)
    yield
    trigger.uninstall(Article)


def test_a_row_that_is_deleted_softly_and_restored_has_all_its_numbers(redis: Redis) -> None:
    article = Article.objects.create()
    view(article, 3)
    flush()
    Article.objects.get().delete()
    assert not Article.objects.get().is_published
    Article.objects.update(is_published=True)
    view(article, 2)
    flush()
    row = Article.objects.get()
    points = reports.series(row)
    assert (row.view_count, row.visitor_count) == (5, 5)
    assert (live(redis, row), sum(point.views for point in points)) == (5, 5)
