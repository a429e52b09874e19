"""No public name goes or changes unnoticed: `docs/public_names.txt` has them as they were last
recorded.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from docs import public_names
from docs.python_api import section
from docs.reference import API, PARTS
from readtrack import parts
from readtrack.conf import DEFAULTS
from readtrack.hits import hit
from readtrack.management.commands.readtrack import subcommands
from readtrack.store import keys
from readtrack.templatetags.readtrack import register

GONE = """
Sites use these names. To rename or to remove one, keep the old name for two minor versions, with a
warning: docs/reference/promise.md. If that has been done, or the name was never released, record
the list anew: python3 manage.py docs --record-names
"""
NEW = "These names are new. Record them, so that they stay: python3 manage.py docs --record-names"


def test_no_public_name_is_gone_or_has_another_signature() -> None:
    assert public_names.difference().gone == [], GONE


def test_each_new_public_name_is_recorded() -> None:
    assert public_names.difference().new == [], NEW


def test_the_list_has_every_kind_of_name() -> None:
    found: dict[str, set[str]] = {}
    for line in public_names.lines():
        kind, _, name = line.partition(" ")
        found.setdefault(kind, set()).add(name)
    names_of_settings = {name.partition(":")[0] for name in found["setting"]}
    assert {name for name in names_of_settings if "." not in name} == {*DEFAULTS, *parts.settings()}
    assert {"COOKIE.name", "NUMBERS.dimensions"} <= names_of_settings
    assert {name.partition(" ")[0] for name in found["command"]} == set(subcommands())
    assert {name.partition(", ")[0] for name in found["key"]} == {
        key.pattern for key in keys.every()
    }
    assert {name.partition(",")[0].partition("(")[0] for name in found["tag"]} == set(register.tags)
    assert found["reason"] == set(hit.REASONS)
    modules = {module.__name__ for module, _ in API.values()}
    assert {name for name in found["python"] if not name.startswith(tuple(modules))} == set()
    assert found.keys() >= {"address", "check", "job", "signal", "style"}


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Records the names as they are now, in another file."""
    monkeypatch.setattr(public_names, "RECORD", tmp_path / "names.txt")
    public_names.record()


def views(objs: Any, *, days: int) -> int:
    """Stands in the place of `reports.views`."""
    return days


@pytest.mark.usefixtures("recorded")
def test_another_signature_is_a_name_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(__name__="readtrack.reports", views=views)
    monkeypatch.setitem(PARTS, "reports", lambda: section(module, ["views"]))
    gone, new = public_names.difference()
    assert any(line.startswith("python readtrack.reports.views(") for line in gone)
    assert new == ["python readtrack.reports.views(objs: Any, *, days: int) -> int"]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("part", "before", "after", "gone"),
    [
        ("settings", "'`1800`'", "'`900`'", "setting WINDOW: int = 1800"),
        ("checks", "`readtrack.E001`", "`readtrack.E901`", "check readtrack.E001, error"),
        ("commands", "show APP.MODEL:KEY", "show KEY", "command show APP.MODEL:KEY"),
        (
            "keys",
            "`trending:list` | sorted set",
            "`trending:list` | list",
            "key trending:list, sorted set",
        ),
    ],
)
def test_what_differs_from_the_record_is_found(
    monkeypatch: pytest.MonkeyPatch, part: str, before: str, after: str, gone: str
) -> None:
    text = PARTS[part]()
    assert before in text
    monkeypatch.setitem(PARTS, part, lambda: text.replace(before, after))
    assert public_names.difference().gone == [gone]


@pytest.mark.usefixtures("recorded")
def test_a_list_that_is_recorded_differs_in_nothing() -> None:
    assert public_names.difference() == ([], [])
