"""What can be set up wrongly about read state."""

from typing import Any

import pytest

from readtrack.checks import check_setup
from tests.site.models import Article


@pytest.mark.parametrize(
    ("options", "id"),
    [
        ({"READ_STATE": "list"}, "readtrack.E002"),
        ({"READERS": 5}, "readtrack.E002"),
        ({"ANONYMOUS_READERS": True, "READERS": "id"}, "readtrack.E040"),
        ({"READ_QUERYSET": "tests.nothing.here"}, "readtrack.E041"),
        ({"READ_QUERYSET": "tests.test_views.UNREAD"}, "readtrack.E041"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named(options: dict[str, Any], id: str, settings: Any) -> None:  # noqa: A002
    settings.READTRACK = options
    assert [message.id for message in check_setup(None)] == [id]


@pytest.mark.parametrize(
    "options", [{"READ_STATE": "sequence"}, {"READERS": "ordinal"}, {"READ_QUERYSET": "tests.test_views.own"}], ids=str
)
def test_a_right_setting_is_not(options: dict[str, Any], settings: Any) -> None:
    settings.READTRACK = options
    assert check_setup(None) == []


@pytest.mark.parametrize(("attribute", "value"), [("news_fields", ("titel",)), ("news_author", "autor")])
def test_a_field_that_is_none_is_named(attribute: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Article, attribute, value)
    (message,) = check_setup(None)
    assert message.id == "readtrack.E009"
    assert f"site.Article.{attribute}" in message.msg
