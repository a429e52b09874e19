"""The README says what the code does."""

import re
from pathlib import Path

import pytest

from readtrack.conf import DEFAULTS
from readtrack.store import keys

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def section(name: str) -> str:
    return README.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]


def test_its_settings_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \|", section("settings"), re.MULTILINE)
    assert rows == [(name, repr(value)) for name, value in DEFAULTS.items()]


def test_its_keys_are_those_of_the_code() -> None:
    table = str(keys.__doc__).partition("\n---")[2]
    documented = re.findall(r"^([a-z]\S*) ", table.partition("\n\n")[0], re.MULTILINE)
    assert re.findall(r"^\| `(\S+)` \|", section("keys"), re.MULTILINE) == documented


def test_it_can_be_read_in_one_sitting() -> None:
    assert len(README.splitlines()) < 250


@pytest.mark.parametrize("picture", re.findall(r"!\[.+?\]\((\S+?)\)", README))
def test_its_pictures_are_there_and_small(picture: str) -> None:
    assert 5_000 < (Path(__file__).parent.parent / picture).stat().st_size < 250_000
