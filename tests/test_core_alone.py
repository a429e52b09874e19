"""Where the tests run with the core alone, those that need a part are left out."""

from pathlib import Path

import pytest

from readtrack import parts
from tests.support import core_alone

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("text", "is_left_out"),
    [
        ("from readtrack.numbers.models import History", True),
        ("from readtrack.numbers import reports", True),
        ("from readtrack import numbers", True),
        ("import readtrack.live.asgi", True),
        ("from tests.support import people", True),
        ("from tests.support.people import add_people", True),
        ("from readtrack import reports", False),
        ("from tests.support import factories", False),
        ("def test_it():\n    from readtrack.numbers import reports", False),
    ],
)
def test_a_module_that_imports_a_part_is_left_out(
    text: str, is_left_out: bool, tmp_path: Path
) -> None:
    module = tmp_path / "test_sample.py"
    module.write_text(f"{text}\n")
    assert core_alone.imports_a_part(module) == is_left_out


def test_what_is_most_of_the_core_has_its_tests_there() -> None:
    for name in ("test_middleware", "test_tracker", "test_receivers", "test_templatetags"):
        assert not core_alone.imports_a_part(TESTS / f"{name}.py")


@pytest.mark.needs_parts("numbers", "live")
def test_a_test_runs_where_the_parts_that_it_needs_are_installed() -> None:
    assert {"readtrack.numbers", "readtrack.live"} <= {part.name for part in parts.installed()}
