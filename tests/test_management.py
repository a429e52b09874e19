"""`manage.py readtrack`, as an operator or a cron job meets it."""

import re

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from readtrack import tracker
from tests import factories
from tests.interference import database_down
from tests.wire import Wire


@pytest.fixture
def _viewed(db: None) -> None:
    tracker.record(factories.hit(f"site.post:{factories.post().pk}"))


def figures(output: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+) +([\d,.]+)$", output, re.MULTILINE))


@pytest.mark.usefixtures("_viewed")
def test_a_flush_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("readtrack", "flush")
    output = capsys.readouterr()
    found = figures(output.out)
    assert float(found.pop("seconds")) >= 0
    assert found == {"read": "1", "written": "1", "settled": "1", "lifted": "0", "orphans": "0"}
    assert output.err == ""


@pytest.mark.usefixtures("_viewed")
def test_a_quiet_flush_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("readtrack", "flush", verbosity=0)
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "")


@pytest.mark.django_db
def test_redis_being_down_is_said_in_words(wire: Wire) -> None:
    wire.cut()
    with pytest.raises(CommandError, match=r"(?s)^Redis failed: .*CACHES"):
        call_command("readtrack", "flush")


@pytest.mark.django_db(transaction=True)
def test_the_database_being_down_is_said_in_words() -> None:
    with database_down(connection), pytest.raises(CommandError, match=r"(?s)^The database failed: .*flush again"):
        call_command("readtrack", "flush")


@pytest.mark.parametrize(("words", "told"), [(["--help"], "flush"), (["flush", "--help"], "cron")])
def test_help_tells_what_there_is(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        call_command("readtrack", *words)
    assert exit_.value.code == 0
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["flsh"], ["flush", "now"]])
def test_a_word_that_is_missing_or_wrong_is_an_error(words: list[str]) -> None:
    with pytest.raises((CommandError, SystemExit)):
        call_command("readtrack", *words)
