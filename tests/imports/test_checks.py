"""The setting IMPORTS, and where the tables of imports are."""

from typing import Any

from django.db.models import Model
from pytest_django import Settings

from tests.checks.findings import found, the_message
from tests.support.rows import each_row


def page_of(path: str) -> None:
    """Stands for the function of a site."""


@each_row(
    "rules",
    [
        {},
        {"plain": "site.Post"},
        {"plain": ("site.Post", "pk")},
        {"plain": ["site.Post", "title", "title"]},
        {"plain": page_of},
    ],
)
def test_rules_that_imports_can_use_are_no_finding(settings: Settings, rules: Any) -> None:
    settings.READTRACK = {"IMPORTS": {"views": rules}}
    assert found() == []


@each_row(
    ("options", "problem"),
    [
        ({"view": {}}, "it has no key 'view'"),
        ({"views": ["plain"]}, "'views' is ['plain'], which is no dict"),
        ({"views": {"plain": 7}}, "'views' has 7 for 'plain'"),
        ({"views": {"plain": ("site.Post",)}}, "'views' has ('site.Post',) for 'plain'"),
        ({"views": {"plain": (Model, "pk")}}, f"'views' has ({Model!r}, 'pk') for 'plain'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_found(
    settings: Settings, options: Any, problem: str
) -> None:
    settings.READTRACK = {"IMPORTS": options}
    message = the_message("readtrack.E096")
    assert message.msg == f"READTRACK['IMPORTS'] cannot be used: {problem}."


class Apart:
    """Keeps the tables of numbers in another database than the others."""

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return "lite" if model._meta.app_label == "readtrack_numbers" else "default"

    db_for_read = db_for_write


def test_history_and_imports_have_to_be_in_one_database(settings: Settings) -> None:
    settings.DATABASE_ROUTERS = [f"{__name__}.Apart"]
    message = the_message("readtrack.E097")
    assert message.msg.startswith(
        "DATABASE_ROUTERS keeps imports in 'default' and history in 'lite'"
    )


def test_options_that_are_no_dict_are_an_error(settings: Settings) -> None:
    settings.READTRACK = {"IMPORTS": []}
    message = the_message("readtrack.E002")
    assert message.msg == "READTRACK['IMPORTS'] is []."
    assert str(message.hint).startswith("Give it a dict, or")
