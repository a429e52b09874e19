"""`manage.py test --fast` leaves out what takes seconds, and no more."""

import pytest

from tests.support import fast
from tests.support.fast import is_slow


def test_what_it_leaves_out_exists() -> None:
    paths = [*fast.PATHS, fast.KEPT]
    assert [path for path in paths if not (fast.ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("path", "is_left_out"),
    [
        ("tests/browser/test_script.py", True),
        ("tests/flush/test_machine.py", True),
        ("tests/flush/test_run.py", False),
        ("tests/test_middleware.py", False),
    ],
)
def test_whole_files_are_left_out(
    path: str, is_left_out: bool, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fast.ROOT / path
    monkeypatch.setattr(pytestconfig.option, "fast", True)
    assert bool(fast.pytest_ignore_collect(file, pytestconfig)) is is_left_out
    monkeypatch.setattr(pytestconfig.option, "fast", False)
    assert fast.pytest_ignore_collect(file, pytestconfig) is None


@pytest.mark.long
def test_a_test_that_takes_long_is_slow(request: pytest.FixtureRequest) -> None:
    assert is_slow(request.node)


def test_a_test_on_the_second_database_is_slow(
    request: pytest.FixtureRequest, database: str
) -> None:
    assert is_slow(request.node) is (database == "lite")
