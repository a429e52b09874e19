"""Values of NUMBERS that cannot be used are found, with what to do about it."""

from typing import Any

import pytest
from pytest_django import Settings

from readtrack.checks.setup import check_setup
from tests.checks.findings import found, the_message
from tests.numbers import test_dimensions
from tests.support.rows import each_row


@each_row(
    ("value", "fits"),
    [
        ({}, True),
        ({"history": False}, True),
        ({"days": 30, "years": 5}, True),
        ({"days": "30"}, False),
        ({"history": {"days": 30}}, False),
        ({"dimensions": ("device",)}, True),
        ({"dimensions": "device"}, False),
        ({"rank_by": "clicks"}, False),
        (["device"], False),
    ],
)
def test_the_keys_have_values_of_their_types(settings: Settings, value: Any, fits: bool) -> None:
    settings.READTRACK = {"NUMBERS": value}
    assert found() == ([] if fits else ["readtrack.E002"])


@each_row(
    ("options", "words"),
    [
        ({"dimensions": "device"}, "['dimensions'] is 'device'. Give it a list of strings, or"),
        ({"funnels": 1}, "['funnels'] is 1. Give it True or False, or"),
        ({"rank_by": "x"}, "['rank_by'] is 'x'. Give it one of 'views', 'seen', or"),
        ({"dimension": []}, " has no key 'dimension'. Did you mean: dimensions?"),
    ],
)
def test_a_message_names_the_key_and_a_hint_the_way_out(
    settings: Settings, options: dict[str, Any], words: str
) -> None:
    settings.READTRACK = {"NUMBERS": options}
    [message] = check_setup(None)
    assert f"{message.msg} {message.hint}".startswith(f"READTRACK['NUMBERS']{words}")


@each_row(
    ("options", "ids"),
    [
        ({"funnel": []}, ["readtrack.E032"]),
        ({"funnel": ["view", "click", "view"]}, ["readtrack.E032"]),
        ({"funnel": ["view"]}, []),
        ({"dimensions": ["shoe"]}, ["readtrack.E033"]),
        ({"dimensions": ["device", "tests.numbers.test_dimensions.plan"]}, []),
        ({"dimensions": ["os", "os"]}, ["readtrack.E033", "readtrack.E033"]),
        ({"dimensions": ["tests.numbers.test_dimensions.UNCALLABLE"]}, ["readtrack.E033"]),
        ({"history": False, "days": 0, "years": 0}, []),
    ],
)
def test_a_value_that_cannot_be_used_is_found(
    settings: Settings, options: dict[str, Any], ids: list[str]
) -> None:
    settings.READTRACK = {"NUMBERS": options}
    assert found() == ids


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("total", "other keys are called 'total'"),
        ("earlier", "other keys are called 'earlier'"),
        ("reset", "other keys are called 'reset'"),
        ("x" * 35, "its name is longer than 34 characters"),
        ("x" * 34, ""),
    ],
)
def test_a_dimension_has_a_name_that_is_free_and_fits(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.setattr(test_dimensions, name, test_dimensions.plan, raising=False)
    settings.READTRACK = {"NUMBERS": {"dimensions": [f"tests.numbers.test_dimensions.{name}"]}}
    assert found() == (["readtrack.E033"] if words else [])
    assert not words or words in the_message("readtrack.E033").msg
