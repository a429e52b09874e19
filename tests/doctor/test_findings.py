"""The doctor words times, sizes and numbers in short."""

import ast
from datetime import timedelta
from pathlib import Path

import pytest

from readtrack.doctor import findings, wording


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (1, "1 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 days"),
    ],
)
def test_durations_are_rounded_to_what_matters(seconds: int, words: str) -> None:
    assert wording.duration(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (12_288, "12.0 KB"),
        (5 * 1024**2, "5.0 MB"),
        (2048 * 1024**3, "2,048.0 GB"),
    ],
)
def test_a_size_is_told_in_its_largest_unit(count: int, words: str) -> None:
    assert wording.size(count) == words


@pytest.mark.parametrize(("count", "words"), [(0, "0 keys"), (1, "1 key"), (2000, "2,000 keys")])
def test_one_is_in_the_singular(count: int, words: str) -> None:
    assert wording.counted(count, "key") == words


def test_every_finding_that_is_not_well_says_what_to_do() -> None:
    source = Path(findings.__file__).read_text(encoding="utf-8")
    levels = set()
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        level = ast.unparse(call.func)
        if level in ("_note", "_warning", "_error"):
            message, hint = call.args
            assert ast.unparse(hint) not in ("''", '""'), ast.unparse(message)
            levels.add(level)
    assert len(levels) == 3
    assert findings._ok("well").hint == ""
