"""`manage.py check` says what is wrong with BUFFER."""

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from pytest_django import Settings

from readtrack.buffer.checks import check_seconds
from readtrack.checks.setting_types import check_keys, check_types


@pytest.mark.parametrize("value", [{}, {"seconds": 0}, {"seconds": 300}], ids=str)
def test_a_good_setting_has_no_problem(settings: Settings, value: dict[str, Any]) -> None:
    settings.READTRACK = {"BUFFER": value}
    assert [*check_seconds(), *check_types(), *check_keys()] == []


def test_a_time_in_milliseconds_is_given_in_seconds(settings: Settings) -> None:
    settings.READTRACK = {"BUFFER": {"seconds": 1000}}
    [message] = check_seconds()
    assert message.id == "readtrack.W053"
    assert message.msg == "READTRACK['BUFFER']['seconds'] is 1000 seconds, which is very long."
    assert "write 1; the default is 0." in str(message.hint)


@pytest.mark.parametrize("value", [1, {"seconds": 0.5}, {"seconds": "1"}], ids=str)
def test_a_value_of_another_type_is_an_error(settings: Settings, value: Any) -> None:
    settings.READTRACK = {"BUFFER": value}
    with pytest.raises(SystemCheckError, match=r"readtrack\.E002"):
        call_command("check")
