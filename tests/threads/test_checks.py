"""Checks of the options of threads in MODELS."""

from typing import Any

from pytest_django import Settings

from tests.checks.findings import found, the_message
from tests.support.rows import each_row

POSITIONS = {"read_state": "positions"}


@each_row(
    ("entries", "check_id", "words"),
    [
        ({"site.Manual": {"read_state": "position"}}, "E046", "Did you mean 'positions'? Give"),
        ({"site.Thread": {**POSITIONS, "boards": "board"}}, "E099", "Give a model with"),
        ({"site.Thread": {**POSITIONS, "boards": [7]}}, "E099", "Give a model with"),
        ({"site.Thread": {**POSITIONS, "is_public": 7}}, "E099", "Give a model with"),
        ({"site.Thread": {"read_state": True, "boards": ["board"]}}, "E099", "Give a model with"),
        ({"site.thread": {**POSITIONS, "boards": ["bord"]}}, "E059", "Name foreign keys"),
        ({"site.thread": {**POSITIONS, "boards": ["is_hidden"]}}, "E059", "Name foreign keys"),
        ({"site.thread": {**POSITIONS, "boards": ["board__name"]}}, "E059", "Name foreign keys"),
    ],
)
def test_a_wrong_entry_of_models_is_found_with_what_was_meant(
    settings: Settings, entries: dict[Any, Any], check_id: str, words: str
) -> None:
    settings.READTRACK = {"MODELS": entries}
    assert found() == [f"readtrack.{check_id}"]
    message = the_message(f"readtrack.{check_id}")
    assert str(message.hint).startswith(words)
    assert str(next(iter(entries))) in message.msg


def test_a_board_has_no_read_state_of_its_own(settings: Settings) -> None:
    threads = {**POSITIONS, "boards": ["board", "board__forum"]}
    settings.READTRACK = {"MODELS": {"site.Thread": threads}}
    assert found() == []
    settings.READTRACK = {"MODELS": {"site.Thread": threads, "site.Board": {"read_state": True}}}
    assert found() == ["readtrack.E059"]
    assert "has a 'read_state' of its own" in the_message("readtrack.E059").msg
    settings.READTRACK = {"MODELS": {"site.Thread": {**threads, "news_for": ["board"]}}}
    assert found() == ["readtrack.E059"]
    assert "a 'news_for' leads to, too" in the_message("readtrack.E059").msg


def test_an_entry_that_is_no_dict_is_found_once(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"site.Thread": ["positions"]}}
    assert found() == ["readtrack.E046"]


def test_the_days_are_a_number(settings: Settings) -> None:
    settings.READTRACK = {"THREADS": {"days": "90"}}
    assert found() == ["readtrack.E002"]
