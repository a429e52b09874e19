"""`manage.py readtrack digest`."""

from datetime import datetime, timezone
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from pytest_django import Settings

from readtrack import buckets
from readtrack.digest import records, sending
from readtrack.digest.models import DigestReader
from readtrack.digest.periods import DigestPeriod, next_due
from tests.support import digests, factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _digest(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST}


def run(*arguments: str) -> str:
    output = StringIO()
    call_command("readtrack", "digest", *arguments, stdout=output)
    return output.getvalue()


def test_a_dry_run_prints_the_mails_and_sends_and_notes_nothing() -> None:
    ann = digests.author(first_name="Ann")
    editor = digests.editor()
    stopped = digests.editor()
    records.set_stopped(str(stopped.pk), is_stopped=True)
    digests.article(7, author=ann)
    output = run("--dry-run")
    assert f"To: {editor.email}\nSubject: news.example.com: 7 views, " in output
    assert f"To: {ann.email}\n" in output
    assert "Numbers of Ann" in output
    assert stopped.email not in output
    assert mail.outbox == []
    assert [row.user for row in DigestReader.objects.all()] == [str(stopped.pk)]
    output = run("--dry-run", "--user", ann.username)
    assert editor.email not in output
    assert "Numbers of Ann" in output


def test_a_dry_run_says_if_nobody_gets_one() -> None:
    output = run("--dry-run")
    assert output.startswith("Nobody gets a digest. It is for active users with an e-mail address")
    editor = digests.editor()
    records.set_stopped(str(editor.pk), is_stopped=True)
    assert run("--dry-run", "--user", editor.username) == output


def test_it_sends_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    digests.editor()
    digests.article(7)
    monday = digests.monday_morning()
    monkeypatch.setattr(buckets, "now", lambda at=None: at or monday)
    assert run() == "Sent 1 mail.\n"
    next_monday = monday + buckets.WEEK
    assert run() == (
        f"Sent 0 mails. The next are due on Monday, {next_monday:%Y-%m-%d}, at 07:00 (UTC).\n"
    )
    assert len(mail.outbox) == 1


@pytest.mark.parametrize(
    ("every", "now", "due"),
    [
        ("week", "2026-11-23 06:59", "2026-11-23 07:00"),
        ("week", "2026-11-23 07:00", "2026-11-30 07:00"),
        ("week", "2026-11-29 23:59", "2026-11-30 07:00"),
        ("day", "2026-11-29 06:00", "2026-11-29 07:00"),
        ("day", "2026-11-29 07:00", "2026-11-30 07:00"),
    ],
)
def test_the_next_mails_are_due_in_the_morning(every: Any, now: str, due: str) -> None:
    at, expected = (datetime.fromisoformat(f"{text}+00:00") for text in (now, due))
    assert next_due(every, timezone.utc, at=at) == expected


def test_mails_that_wait_for_a_full_flush_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    digests.editor()
    monday = digests.monday_morning()
    monkeypatch.setattr(buckets, "now", lambda at=None: at or monday)
    assert run() == "Sent 0 mails. Some wait for a full flush; run: manage.py readtrack flush\n"


def test_one_user_gets_it_at_once_and_once() -> None:
    editor = digests.editor()
    digests.editor()
    digests.article(7)
    assert run("--user", editor.username) == "Sent 1 mail.\n"
    assert run("--user", editor.username) == "Sent 0 mails.\n"
    assert [message.to for message in mail.outbox] == [[editor.email]]
    records.set_stopped(str(editor.pk), is_stopped=True)
    assert run("--user", editor.username, "--again") == "Sent 1 mail.\n"


def test_it_sends_another_period() -> None:
    digests.editor()
    digests.article(7, before=3)
    monday = digests.week().first_day.isoformat()
    assert run("--at", monday) == "Sent 1 mail.\n"
    assert "news.example.com: 3 views" in mail.outbox[0].subject
    assert run("--every", "day") == "Sent 1 mail.\n"
    yesterday = buckets.now().date() - buckets.DAY
    assert DigestReader.objects.get().sent_until == yesterday
    assert sending.period_of("day", at=None) == DigestPeriod(yesterday, yesterday)
    assert run("--every", "week") == "Sent 0 mails.\n"  # that is in the past


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--user", "nobody"], "There is no user 'nobody'"),
        (["--user", "reader"], "'reader' has no e-mail address, or is not active"),
        (["--again"], "--again needs --user"),
        (["--at", "yesterday"], "'yesterday' is no day such as 2026-11-23"),
    ],
)
def test_what_it_cannot_do_it_says(arguments: list[str], message: str) -> None:
    factories.user(username="reader")
    with pytest.raises(CommandError, match=message):
        run(*arguments)


@pytest.mark.parametrize(
    ("digest", "message"), [({}, "it is not set"), ({"site": "example.com"}, "'site' is")]
)
def test_without_usable_settings_it_says_so(
    digest: dict[str, Any], message: str, settings: Settings
) -> None:
    settings.READTRACK = {"DIGEST": digest}
    with pytest.raises(CommandError, match=f"READTRACK\\['DIGEST'\\] cannot be used: {message}"):
        run()


def test_a_failure_ends_it_with_an_error(settings: Settings) -> None:
    editor = digests.editor()
    digests.article(7)
    type(editor).objects.update(email="a@example.com\nBcc: b@example.com")
    with pytest.raises(CommandError, match="Sent 0 mails; 1 failed, see the log"):
        run("--user", editor.username)
    assert mail.outbox == []


@pytest.mark.parametrize("words", [["--every", "day"], ["--every", "week"], ["--dry-run"]])
def test_days_that_are_not_over_are_refused(words: list[str]) -> None:
    digests.editor()
    in_a_month = (buckets.now() + 30 * buckets.DAY).date().isoformat()
    with pytest.raises(CommandError, match="not over"):
        run("--at", in_a_month, *words)
    assert not DigestReader.objects.exists()


def test_it_is_sent_without_redis(wire: Wire) -> None:
    digests.article(7)
    editor = digests.editor()
    wire.cut()
    assert f"To: {editor.email}\nSubject: news.example.com: 7 views, " in run("--dry-run")
