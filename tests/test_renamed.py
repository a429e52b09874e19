"""A renamed setting goes on under its old name for a while."""

import pytest
from pytest_django import Settings

from readtrack import renamed
from readtrack.conf import conf
from tests.checks.findings import found, the_message


@pytest.fixture
def old_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets WINDOW have had another name before."""
    monkeypatch.setitem(renamed.RENAMED, "REPEAT_SECONDS", "WINDOW")


@pytest.mark.usefixtures("old_name")
def test_the_old_name_goes_on_and_a_check_warns(settings: Settings) -> None:
    settings.READTRACK = {"REPEAT_SECONDS": 60}
    assert conf.WINDOW == 60
    assert found() == ["readtrack.W047"]
    assert "'REPEAT_SECONDS'] is called 'WINDOW' now" in the_message("readtrack.W047").msg
    assert str(the_message("readtrack.W047").hint).startswith("Write 'WINDOW' in its place")


@pytest.mark.usefixtures("old_name")
@pytest.mark.parametrize("order", [1, -1])
def test_of_both_names_the_new_one_counts(settings: Settings, order: int) -> None:
    own = [("REPEAT_SECONDS", 60), ("WINDOW", 90)][::order]
    settings.READTRACK = dict(own)
    assert conf.WINDOW == 90
    assert found() == ["readtrack.W047"]


@pytest.mark.usefixtures("old_name")
def test_a_wrong_value_under_an_old_name_is_found(settings: Settings) -> None:
    settings.READTRACK = {"REPEAT_SECONDS": "60"}
    assert found() == ["readtrack.W047", "readtrack.E002"]
