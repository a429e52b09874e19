"""Rows that the model's managers hide, even its base manager, are rows."""

from typing import Any

import pytest
from django.db import models
from pytest_django import Settings

from readtrack import reports
from readtrack.flush import resets
from readtrack.flush.run import flush
from readtrack.models import tracked
from readtrack.unread import starting
from tests.site.models import Article, Manual, Note
from tests.support import factories
from tests.support.counts import view

pytestmark = pytest.mark.django_db(databases=["default", "lite"])


class Nothing(models.Manager):
    """Hides every row, as a manager for soft deletion does once all are deleted."""

    def get_queryset(self) -> models.QuerySet:
        return super().get_queryset().none()


def hide(model: type[models.Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the model a base manager that hides all rows, as `base_manager_name` does."""
    manager: Any = Nothing()
    manager.model = model
    monkeypatch.setattr(model._meta, "base_manager", manager)
    assert not model._base_manager.exists()


@pytest.fixture(params=[Note, Manual])
def obj(request: pytest.FixtureRequest, settings: Settings) -> Any:
    settings.READTRACK = {"MODELS": {"site.Manual": {"counted": True, "read_state": True}}}
    return request.param.objects.create()


@pytest.mark.needs_parts("numbers")
def test_a_hidden_row_is_no_orphan(
    database: str, obj: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from readtrack.numbers import reports as numbers_reports

    monkeypatch.setattr("readtrack.flush.totals.ORPHAN_PATIENCE", 0)
    view(obj, obj)
    flush()
    with monkeypatch.context() as patch:
        hide(type(obj), patch)
        view(obj)
        for _ in range(3):
            run = flush()
            assert run.orphans == 0
    assert reports.views([obj])[obj] == 3
    assert sum(point.views for point in numbers_reports.series(obj)) == 3


def test_a_table_of_hidden_rows_is_not_taken_for_an_empty_one(
    obj: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    view(obj, obj)
    flush()
    with monkeypatch.context() as patch:
        hide(type(obj), patch)
        resets.on_flush(None, using="default")
    assert reports.views([obj])[obj] == 2


def test_a_hidden_category_starts_as_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"read_state": True}}}
    user = factories.user()
    manual = Manual.objects.create()
    with monkeypatch.context() as patch:
        hide(Manual, patch)
        assert starting.start_as_read(Manual) == 1
    assert reports.unread(user, [manual]) == set()


def test_a_save_of_a_hidden_row_is_compared_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    article = Article.objects.create()
    hide(Article, monkeypatch)
    assert tracked.stored_values(article, ["title"], using="default") == {"title": "Title"}
