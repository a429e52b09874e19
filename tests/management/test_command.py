"""`manage.py readtrack`, for operators and cron jobs."""

import json
import os
import re
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.management.commands.readtrack import Command
from tests.support import factories
from tests.support.interference import database_down
from tests.support.wire import Wire


@pytest.fixture
def _viewed(db: None) -> None:
    tracker.record(factories.hit(f"site.post:{factories.post().pk}"))


def figures(output: str) -> dict[str, str]:
    """Returns the numbers that a flush has printed, by the text behind each."""
    lines = re.findall(r"^ *([\d,.]+) (.+)$", output, re.MULTILINE)
    return {text: number for number, text in lines}


@pytest.mark.usefixtures("_viewed")
def test_a_flush_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("readtrack", "flush")
    output = capsys.readouterr()
    found = figures(output.out)
    assert float(found.pop("seconds")) >= 0
    settled = "counters that began anew in Redis, and go on from SQL's count"
    assert int(found.pop(settled)) >= 1  # the total, and counters of parts
    assert found == {
        "counts read": "1",
        "rows written": "1",
        "counters raised to SQL's count, which was higher": "0",
        "counts of deleted rows": "0",
        "rows that another transaction holds; the next flush writes them": "0",
        "rows or tables not stored": "0",
    }
    assert output.err == ""


@pytest.mark.usefixtures("_viewed")
@pytest.mark.parametrize("words", [["flush"], ["flush", "--changed"]], ids=" ".join)
def test_a_flush_by_hand_refreshes_trending(redis: Redis, words: list[str]) -> None:
    call_command("readtrack", *words, verbosity=0)
    assert redis.exists("trending:list")


@pytest.mark.usefixtures("_viewed")
@pytest.mark.parametrize(
    ("words", "is_full"), [(["--full"], True), ([], True), (["--changed"], False)], ids=str
)
def test_full_is_another_name_for_what_a_flush_does_by_default(
    redis: Redis, words: list[str], *, is_full: bool
) -> None:
    call_command("readtrack", "flush", verbosity=0)  # the first one is always full
    redis.delete("flush:full")
    call_command("readtrack", "flush", *words, verbosity=0)
    assert bool(redis.exists("flush:full")) == is_full


def test_a_flush_is_either_full_or_of_what_has_changed() -> None:
    with pytest.raises(CommandError, match="not allowed with"):
        call_command("readtrack", "flush", "--full", "--changed")


@pytest.mark.usefixtures("_viewed")
def test_a_quiet_flush_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("readtrack", "flush", verbosity=0)
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "")


@pytest.mark.usefixtures("_viewed")
@pytest.mark.parametrize(
    ("words", "is_told"),
    [
        (["flush", "-v", "0"], False),
        (["-v", "0", "flush"], False),
        (["-v", "0", "flush", "-v", "1"], True),
        (
            [
                "flush",
                "--settings",
                "x",
                "--pythonpath",
                "y",
                "--traceback",
                "--no-color",
                "--skip-checks",
            ],
            True,
        ),
    ],
    ids=str,
)
def test_djangos_own_options_stand_before_the_word_or_behind_it(
    capsys: pytest.CaptureFixture[str], words: list[str], *, is_told: bool
) -> None:
    call_command("readtrack", *words)
    assert bool(capsys.readouterr().out) == is_told


def test_an_option_before_the_word_is_not_undone_by_the_word() -> None:
    parser = Command().create_parser("manage.py", "readtrack")
    before, behind = ["--traceback", "--no-color", "flush"], ["flush", "--traceback", "--no-color"]
    assert vars(parser.parse_args(before)) == vars(parser.parse_args(behind))
    assert parser.parse_args(behind).traceback
    assert not parser.parse_args(["flush"]).traceback


@pytest.mark.parametrize("words", [["flush"], ["erase", "1"]], ids=" ".join)
def test_settings_that_name_no_redis_are_said_in_words(
    settings: Settings, words: list[str]
) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": "127.0.0.1:6379"}}
    with pytest.raises(
        CommandError, match=r"(?s)^CACHES\['default'\] names no Redis: .*redis://127.0.0.1:6379/0"
    ):
        call_command("readtrack", *words)


@pytest.mark.django_db
def test_that_redis_is_down_is_said_in_words(wire: Wire) -> None:
    wire.cut()
    with pytest.raises(
        CommandError, match=r"(?s)^Redis failed: .*CACHES.*\nWhat was done stays. Run it again.$"
    ):
        call_command("readtrack", "flush")


@pytest.mark.django_db(transaction=True)
def test_the_database_being_down_is_said_in_words() -> None:
    with (
        database_down(connection),
        pytest.raises(
            CommandError,
            match=r"(?s)^The database failed: .*manage.py migrate\nWhat was done stays. Run it again.$",
        ),
    ):
        call_command("readtrack", "flush")


@pytest.mark.parametrize(("words", "told"), [(["--help"], "flush"), (["flush", "--help"], "cron")])
def test_help_tells_what_there_is(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        call_command("readtrack", *words)
    assert exit_.value.code == 0
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["flsh"], ["flush", "now"]])
def test_a_word_that_is_missing_or_wrong_is_an_error(words: list[str]) -> None:
    with pytest.raises((CommandError, SystemExit)):
        call_command("readtrack", *words)


OPTIMISED = """
import django
from django.core.management import call_command
django.setup()
call_command("migrate", verbosity=0)
call_command("readtrack", "budget", "--json")
print("---")
call_command("readtrack", "doctor", "--json")
"""


@pytest.mark.needs_parts("metrics")  # which has the budget
def test_commands_work_without_docstrings(redis: Redis) -> None:
    redis.set("views:total:site.post:1", 7)
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "DATABASE_URL": "sqlite://"}
    done = subprocess.run(
        [sys.executable, "-OO", "-c", OPTIMISED],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr  # the doctor has warnings for a new site
    budget, doctor = map(json.loads, done.stdout.split("---\n"))
    assert "views:total:{subject}" in str(budget)
    assert "1 total looked at" in str(doctor)
