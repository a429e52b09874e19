"""The check for histories that have the counts. tests/beside/ runs it with the packages."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.apps import apps

from readtrack.checks.histories import check_counts
from tests.site.models import Post


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda name: monkeypatch.setattr(apps, "is_installed", name.__eq__)


def test_a_history_by_triggers_has_to_leave_the_counts_out(
    install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("pghistory")
    assert check_counts() == []
    monkeypatch.setattr(Post, "pgh_tracked_model", Post, raising=False)
    [message] = check_counts()
    assert message.id == "readtrack.W087"
    assert message.msg == "pghistory keeps each change of the counts of site.Post."


@pytest.mark.parametrize("excluded", [{"view_count"}, {"view_count", "visitor_count"}])
def test_an_audit_log_has_to_leave_the_counts_out(
    install: Any, monkeypatch: pytest.MonkeyPatch, excluded: set[str]
) -> None:
    registry: Any = ModuleType("auditlog.registry")
    registry.auditlog = SimpleNamespace(
        contains=lambda model: model is Post,
        get_model_fields=lambda model: {"exclude_fields": excluded},
    )
    monkeypatch.setitem(sys.modules, "auditlog", ModuleType("auditlog"))
    monkeypatch.setitem(sys.modules, "auditlog.registry", registry)
    install("auditlog")
    assert len(check_counts()) == len({"view_count", "visitor_count"} - excluded)
