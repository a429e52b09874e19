"""A renamed setting goes on under its old name for a while, and a removed one says what replaces it."""

from typing import Any

import pytest
from pytest_django import Settings

from readtrack import renamed
from readtrack.checks.setup import check_setup
from readtrack.conf import TYPES, conf
from readtrack.renamed import REMOVED
from tests.checks.findings import found, the_message
from tests.support.rows import each_row


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


def test_no_removed_name_is_a_setting() -> None:
    assert not REMOVED.keys() & TYPES.keys()


@each_row("value", [None, 7, "x", ["x"], {"x": ["y"]}, {1: [1]}])
@each_row("name", REMOVED)
def test_a_removed_setting_is_refused_whatever_its_value(
    settings: Settings, name: str, value: Any
) -> None:
    settings.READTRACK = {name: value}
    assert found() == ["readtrack.E048"]
    message = the_message("readtrack.E048")
    assert message.msg == f"READTRACK['{name}'] is no setting any more."
    assert str(message.hint).startswith(("Leave it out: ", "Write "))


@each_row(
    ("own", "line"),
    [
        ({"RATE_LIMIT": 7}, '"RATE": (7, 10)'),
        ({"RATE_LIMIT": 0, "RATE_WINDOW": 60}, '"RATE": (0, 60)'),
        ({"PROXY_COUNT": 2}, '"PROXIES": 2'),
        ({"PROXY_COUNT": 0}, '"PROXIES": 0'),
        ({"PROXY_COUNT": 2, "TRUSTED_PROXIES": ["10.0.0.1"]}, "\"PROXIES\": ['10.0.0.1']"),
        ({"HISTORY_YEARS": 5}, "\"HISTORY\": {'days': 90, 'years': 5}"),
        ({"HISTORY": False, "HISTORY_DAYS": 30}, '"HISTORY": False alone'),
        (
            {
                "COUNTED_MODELS": ["site.Gadget", "site.Manual"],
                "NEWS_FOR": {"site.Gadget": ["category"]},
                "READ_STATE_MODELS": ["site.Manual"],
            },
            "\"MODELS\": {'site.Gadget': {'counted': True, 'news_for': ['category']},"
            " 'site.Manual': {'counted': True, 'read_state': True}}",
        ),
    ],
)
def test_the_line_that_replaces_it_has_the_sites_values_and_works(
    settings: Settings, own: dict[str, Any], line: str
) -> None:
    settings.READTRACK = own
    hints = {str(m.hint) for m in check_setup(None) if m.id == "readtrack.E048"}
    assert hints == {f"Write {line} in its place."}
    settings.READTRACK = eval("{" + line.removesuffix(" alone") + "}")
    assert found() == []
