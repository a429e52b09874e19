"""News by a GeneratedField: a save changes it only once the database has written the row."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, models
from django.db.models import ExpressionWrapper, Q
from django.test.utils import isolate_apps

from readtrack import receivers
from readtrack.models import Tracked, tracked


@pytest.fixture
def release(transactional_db: None) -> Iterator[Any]:
    """Makes a table, and a row in it that is not published."""
    with isolate_apps("tests.site"):

        class Release(Tracked):
            state = models.CharField(max_length=10, default="draft")
            is_live = models.GeneratedField(
                expression=ExpressionWrapper(Q(state="live"), models.BooleanField()),
                output_field=models.BooleanField(),
                db_persist=True,
            )
            news_fields = ("is_live",)

            class Meta:
                app_label = "site"

            def __str__(self) -> str:
                return self.state

        with connection.schema_editor() as editor:
            editor.create_model(Release)
        yield Release._base_manager.create()
        with connection.schema_editor() as editor:
            editor.delete_model(Release)


@pytest.mark.parametrize("only", [None, {"state"}])
def test_a_save_that_changes_what_the_database_computes_is_noticed(
    release: Any, only: set[str] | None
) -> None:
    using = connection.alias
    release.state = "live"
    stored = tracked.stored_values(release, only, using=using)
    assert {**(stored or {})} == {"is_live": False}
    assert not receivers._is_unchanged(release, stored or {})
    release.save(update_fields=only)
    generated = tracked.generated_values(release, stored or {}, using=using)
    assert tracked.changed_fields(release, stored or {}, generated=generated) == {"is_live"}


def test_another_change_is_none(release: Any) -> None:
    using = connection.alias
    stored = tracked.stored_values(release, None, using=using) or {}
    release.state = "review"
    release.save()
    generated = tracked.generated_values(release, stored, using=using)
    assert tracked.changed_fields(release, stored, generated=generated) == set()
