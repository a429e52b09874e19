"""`manage.py check` says what is wrong with RECENT, and the part goes on with what is right."""

from typing import Any

import pytest
from pytest_django import Settings

from readtrack.recent.checks import check_setting
from readtrack.recent.options import recent_options

MODELS = {"models": ["site.Post"]}


@pytest.mark.parametrize(
    "value",
    [{}, MODELS, {**MODELS, "kept": 200, "days": 1, "visitors": True}, {"models": ("site.post",)}],
    ids=str,
)
def test_a_good_setting_has_no_problem(settings: Settings, value: dict[str, Any]) -> None:
    settings.READTRACK = {"RECENT": value}
    assert check_setting() == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({**MODELS, "number": 5}, "it has no key 'number'"),
        ({"kept": 5}, "'models' is no list of models, so nothing is kept"),
        ({"models": "site.Post"}, "'models' is no list of models, so nothing is kept"),
        ({"models": ["site.Nothing"]}, "'models' has 'site.Nothing', which is no model"),
        ({"models": ["auth.User"]}, "'models' has 'auth.User', which is no model with counts"),
        ({"models": [1]}, "'models' has 1, which is no model with counts"),
        ({**MODELS, "kept": 201}, "'kept' is 201, which is no whole number from 1 to 200"),
        ({**MODELS, "days": True}, "'days' is True, which is no whole number from 1 to 400"),
        ({**MODELS, "visitors": "yes"}, "'visitors' is neither True nor False"),
    ],
    ids=str,
)
def test_a_problem_is_named(settings: Settings, value: dict[str, Any], problem: str) -> None:
    settings.READTRACK = {"RECENT": value}
    [message] = check_setting()
    assert message.id == "readtrack.E098"
    assert problem in message.msg
    options = recent_options()
    assert (options.kept, options.days, options.visitors) in [(20, 30, False), (5, 30, False)]
