"""Each digest is sent once, whoever sends it and whatever fails."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiosmtpd.controller import Controller
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from demo_project.engines.process import free_port
from readtrack import parts
from readtrack.digest import readers, records, sending
from readtrack.digest.mail import letter
from readtrack.digest.models import DigestReader
from readtrack.digest.readers import reader_of
from readtrack.digest.sending import send, send_due
from readtrack.models import FlushRun
from readtrack.numbers import mailing
from readtrack.store import scripts
from tests.support import digests
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db
SHANGHAI = "tests.digest.test_sending.shanghai"


@pytest.fixture(autouse=True)
def _digest(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST}


def receivers() -> list[str]:
    """Returns the addresses that mails went to, and empties the outbox."""
    addresses = sorted(message.to[0] for message in mail.outbox)
    mail.outbox.clear()
    return addresses


def shanghai(user: Any) -> tuple[str, str]:
    """Stands for a site's function that knows a user's language and time zone."""
    if user.username == "broken":
        raise RuntimeError
    return ("xx" if user.username == "nowhere" else "de"), "Asia/Shanghai"


def test_editors_get_the_sites_numbers_and_authors_their_own_on_monday_once() -> None:
    editor = digests.editor()
    ann, bob, eve = (digests.author() for _ in range(3))
    digests.articles(
        {"views": 7, "author": ann},
        {"views": 0, "before": 3, "author": bob},
        {"views": 5, "author": editor},
        {"views": 0, "author": eve},
    )
    send_due(at=digests.monday_morning(6.9))
    assert receivers() == []
    sent = send_due(at=digests.monday_morning(7))
    assert (sent.sent, sent.failed) == (3, 0)
    subjects = {message.to[0]: message.subject.partition(",")[0] for message in mail.outbox}
    assert subjects == {
        editor.email: "news.example.com: 12 views",
        ann.email: "news.example.com: 7 views",
        bob.email: "news.example.com: 0 views",
    }
    assert receivers() == sorted([editor.email, ann.email, bob.email])
    for hours in (7.1, 8, 20, 30.9):
        send_due(at=digests.monday_morning(hours))
        assert receivers() == []


def test_users_without_an_address_without_the_permission_or_inactive_get_none() -> None:
    digests.article(5, author=digests.author(is_active=False))
    digests.editor(is_active=False)
    nameless = digests.editor()
    type(nameless).objects.filter(pk=nameless.pk).update(email="")
    digests.author(is_staff=True)
    send_due(at=digests.monday_morning())
    assert receivers() == []


def test_without_the_key_authors_get_none(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": {**digests.DIGEST, "authors": False}}
    digests.article(5, author=digests.author())
    send_due(at=digests.monday_morning())
    assert receivers() == []


def test_without_the_setting_nothing_is_sent(settings: Settings) -> None:
    settings.READTRACK = {}
    digests.article(5)
    digests.editor()
    assert "digest" not in {job.name for job in parts.jobs()}
    send_due(at=digests.monday_morning())
    assert receivers() == []


def test_it_waits_for_a_full_flush_after_its_days() -> None:
    editor = digests.editor()
    digests.article(5)
    monday = digests.monday_morning(0)
    FlushRun.objects.update(started=monday - timedelta(seconds=1))
    send_due(at=digests.monday_morning())
    FlushRun.objects.create(
        kind=FlushRun.Kind.CHANGED, started=monday, ended=monday + timedelta(seconds=1)
    )
    send_due(at=digests.monday_morning())
    assert receivers() == []
    FlushRun.objects.update(kind=FlushRun.Kind.FULL)
    send_due(at=digests.monday_morning())
    assert receivers() == [editor.email]


def test_on_a_day_without_digests_no_query_is_made(django_assert_num_queries: Any) -> None:
    digests.editor()
    with django_assert_num_queries(0):
        send_due(at=digests.monday_morning(3 * 24))


def rule(user: Any, obj: Any) -> bool:
    """Stands for a site's VIEW_NUMBERS."""
    return bool(user.username.startswith("chief"))


def chiefs() -> Any:
    """Stands for a site's function that names who may get the numbers of the site."""
    from django.contrib.auth.models import User

    return User.objects.filter(username__in=["chief", "other"])


def test_a_site_may_name_its_editors_and_its_rule_still_decides(settings: Settings) -> None:
    here = "tests.digest.test_sending"
    options = {**digests.DIGEST, "users": f"{here}.chiefs"}
    settings.READTRACK = {"DIGEST": options, "VIEW_NUMBERS": f"{here}.rule"}
    chief = digests.author(username="chief")
    digests.author(username="other")
    digests.author(username="chief2")
    digests.article(5, author=digests.author())
    send_due(at=digests.monday_morning())
    assert receivers() == [chief.email]


def test_it_is_due_and_written_as_the_sites_function_says(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"DIGEST": {**digests.DIGEST, "locale": SHANGHAI}}
    digests.article(5)
    german = digests.editor(username="german")
    broken = digests.editor(username="broken")
    nowhere = digests.editor(username="nowhere")
    send_due(at=digests.monday_morning(0.1))  # past eight in Shanghai
    assert "5 Aufrufe" in mail.outbox[0].subject
    assert "5 views" in mail.outbox[1].subject  # there is no such language
    assert receivers() == sorted([german.email, nowhere.email])
    assert f"{SHANGHAI} failed" in caplog.text
    send_due(at=digests.monday_morning(7))
    assert receivers() == [broken.email]


def zone_as_object(user: Any) -> tuple[str, ZoneInfo]:
    """Stands for a site's function that returns what a field of time zones holds."""
    return "de", ZoneInfo("Asia/Shanghai")


def test_the_sites_function_may_return_a_time_zone_itself(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    path = "tests.digest.test_sending.zone_as_object"
    settings.READTRACK = {"DIGEST": {**digests.DIGEST, "locale": path}}
    reader = reader_of(digests.editor())
    assert reader
    assert (reader.language, str(reader.zone)) == ("de", "Asia/Shanghai")
    assert not caplog.records


def honolulu(user: Any) -> tuple[str, str]:
    """Stands for a site's function, whose readers live far to the west of it."""
    return "en", "Pacific/Honolulu"


def test_where_the_morning_comes_after_the_sites_next_day_each_day_is_sent_once(
    settings: Settings,
) -> None:
    path = "tests.digest.test_sending.honolulu"
    settings.TIME_ZONE = "Asia/Tokyo"
    settings.READTRACK = {"DIGEST": {**digests.DIGEST, "every": "day", "locale": path}}
    editor = digests.editor()
    digests.article(5)
    sunday = digests.week().last_day
    dates = []
    for hour in range(-24, 24):
        send_due(at=digests.monday_morning(hour))
        dates += [DigestReader.objects.get().sent_until for _ in receivers()]
    # The article's views are of Tuesday, so the days are empty, and only the first one is told.
    assert dates == [sunday - timedelta(days=2)]
    assert DigestReader.objects.get(user=str(editor.pk)).sent_until == sunday - timedelta(days=1)


def test_of_very_many_readers_a_portion_is_in_memory_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts, "SLICE", 2)
    editors = [digests.editor() for _ in range(5)]
    digests.article(5)
    with CaptureQueriesContext(connection) as queries:
        send_due(at=digests.monday_morning())
    assert receivers() == sorted(editor.email for editor in editors)
    of_users = [query["sql"] for query in queries if "is_staff" in query["sql"].split("WHERE")[-1]]
    assert len(of_users) == 3
    assert all("LIMIT 2" in sql for sql in of_users)


def test_an_empty_week_says_so_once() -> None:
    editor = digests.editor()
    at = digests.monday_morning()
    digests.articles({"views": 0, "before": 5})
    for week, expected in ((0, [editor.email]), (1, []), (2, [])):
        send_due(at=at + timedelta(days=7 * week))
        assert receivers() == expected
    row = DigestReader.objects.get()
    assert row.was_empty
    assert row.sent_until == digests.week().last_day + timedelta(days=14)


def test_after_an_empty_week_a_week_with_views_is_told_again() -> None:
    editor = digests.editor()
    digests.article(5)
    DigestReader.objects.create(
        user=str(editor.pk), was_empty=True, sent_until=digests.week().first_day
    )
    send_due(at=digests.monday_morning())
    assert receivers() == [editor.email]
    assert not DigestReader.objects.get().was_empty


def test_who_has_stopped_it_gets_none_until_that_is_taken_back() -> None:
    editor = digests.editor()
    digests.article(5)
    records.set_stopped(str(editor.pk), is_stopped=True)
    send_due(at=digests.monday_morning())
    assert receivers() == []
    records.set_stopped(str(editor.pk), is_stopped=False)
    send_due(at=digests.monday_morning())
    assert receivers() == [editor.email]


def test_who_stops_it_during_a_run_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    editor = digests.editor()
    digests.article(5)
    whole_letter = letter

    def letter_and_stop(*args: Any) -> Any:
        records.set_stopped(str(editor.pk), is_stopped=True)
        return whole_letter(*args)

    monkeypatch.setattr(sending, "letter", letter_and_stop)
    send_due(at=digests.monday_morning())
    assert receivers() == []


class Failing(EmailBackend):
    """A mail server that refuses some addresses, and closes the connection then."""

    refuses: Callable[[str], bool] = staticmethod(lambda address: address.startswith("editor1"))
    is_down = False
    opened = 0

    def open(self) -> bool:
        if Failing.is_down:
            raise ConnectionRefusedError
        Failing.opened += 1
        return True

    def send_messages(self, messages: Any) -> Any:
        if Failing.refuses(messages[0].to[0]):
            raise RuntimeError("refused")
        return super().send_messages(messages)


@pytest.fixture
def failing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> type[Failing]:
    digests.use_mail_server(settings, "tests.digest.test_sending.Failing")
    monkeypatch.setattr(Failing, "opened", 0)
    monkeypatch.setattr(Failing, "is_down", False)
    return Failing


def test_a_mail_that_fails_keeps_no_other_from_being_sent_and_is_not_tried_again(
    failing: type[Failing], caplog: pytest.LogCaptureFixture
) -> None:
    editors = [digests.editor() for _ in range(3)]
    digests.article(5)
    sent = send_due(at=digests.monday_morning())
    assert (sent.sent, sent.failed) == (2, 1)
    assert receivers() == [editors[0].email, editors[2].email]
    assert f"The digest of the user {editors[1].pk} was not sent" in caplog.text
    sent = send_due(at=digests.monday_morning(9))
    assert (sent.sent, sent.failed) == (0, 0)
    # The log says how to send it.
    failing.refuses = staticmethod(lambda address: False)
    try:
        send([digests.reader(editors[1])], digests.week(), is_again=True)
    finally:
        failing.refuses = staticmethod(lambda address: address.startswith("editor1"))
    assert receivers() == [editors[1].email]


def test_without_a_mail_server_the_digests_wait(
    failing: type[Failing], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    editor = digests.editor(username="one")
    type(editor).objects.filter(pk=editor.pk).update(email="ann@example.com")
    digests.article(5)
    monkeypatch.setattr(failing, "is_down", True)
    assert send_due(at=digests.monday_morning()).sent == 0
    assert "The mail server does not answer" in caplog.text
    assert not DigestReader.objects.exists()
    monkeypatch.setattr(failing, "is_down", False)
    assert send_due(at=digests.monday_morning(8)).sent == 1
    assert receivers() == ["ann@example.com"]


def test_a_mail_server_that_never_answers_keeps_nothing_waiting_for_ever(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mailing, "TIMEOUT", 0.2)
    digests.editor()
    digests.article(5)
    with digests.silent_mail_server(settings):
        assert send_due(at=digests.monday_morning()).sent == 0
    assert "The mail server does not answer" in caplog.text
    assert not DigestReader.objects.exists()


def test_a_site_whose_titles_fail_claims_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    editor = digests.editor()
    digests.article(5)

    def fail(*args: Any) -> Any:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(sending, "letter", fail)
        assert send_due(at=digests.monday_morning()).failed == 1
    send_due(at=digests.monday_morning())
    assert receivers() == [editor.email]
    assert "was not sent" in caplog.text


def test_a_process_that_is_killed_after_the_claim_leaves_the_digest_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is missing rather than there twice; the next one comes."""
    editor = digests.editor()
    digests.article(5)

    def die(*args: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EmailBackend, "send_messages", die)
        with pytest.raises(KeyboardInterrupt):
            send_due(at=digests.monday_morning())
    send_due(at=digests.monday_morning())
    assert receivers() == []
    send_due(at=digests.monday_morning() + timedelta(days=7))
    assert receivers() == [editor.email]


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_sends_it() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("each thread would have a database of its own")
    editors = [digests.editor() for _ in range(4)]
    digests.article(5)
    at = digests.monday_morning()
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        send_due(at=at)
        connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert receivers() == sorted(editor.email for editor in editors)


def costs(wire: Wire) -> tuple[int, int]:
    """Returns the queries and the trips to Redis of a run that sends all digests anew."""
    DigestReader.objects.all().delete()
    trips = wire.trips
    with CaptureQueriesContext(connection) as queries:
        sending.send_due(at=digests.monday_morning())
    return len(queries), wire.trips - trips


def test_the_sites_numbers_are_computed_once_and_those_of_an_author_cost_a_few_queries(
    wire: Wire,
) -> None:
    authors = [digests.author() for _ in range(6)]
    values = [{"views": 5, "author": author} for author in authors]
    digests.articles(*values)
    digests.editor(is_superuser=True)
    type(authors[0]).objects.filter(pk__in=[author.pk for author in authors[3:]]).update(
        is_active=False
    )
    queries, trips = costs(wire)
    assert len(receivers()) == 4
    for _ in range(5):
        digests.editor(is_superuser=True)
    queries_of_editors, trips_of_editors = costs(wire)
    assert len(receivers()) == 9
    assert trips_of_editors <= trips
    # Each editor costs the claim, which is two statements.
    assert queries_of_editors - queries <= 5 * 2
    type(authors[0]).objects.update(is_active=True)
    queries_of_authors, trips_of_authors = costs(wire)
    assert len(receivers()) == 12
    assert trips_of_authors - trips_of_editors <= 3 * 8
    assert queries_of_authors - queries_of_editors <= 3 * 22


class Inbox:
    """Keeps what an SMTP server gets. It takes a number of mails by one connection."""

    def __init__(self, *, most: int = 100) -> None:
        self.mails: list[Any] = []
        self.sessions = 0
        self._most = most
        self._left = most

    async def handle_EHLO(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        self.sessions += 1
        self._left = self._most
        session.host_name = hostname
        return responses

    async def handle_MAIL(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        self._left -= 1
        if self._left < 0:
            return "421 Too many mails"
        envelope.mail_from = address
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.mails.append(envelope)
        return "250 OK"


@contextmanager
def mail_server(settings: Settings, inbox: Inbox) -> Iterator[None]:
    """Lets Django send mails to a real server."""
    port = free_port()
    controller = Controller(inbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        digests.use_mail_server(settings, "django.core.mail.backends.smtp.EmailBackend", port=port)
        yield
    finally:
        controller.stop()


# The package that stands for one calls what Python 3.14 deprecates.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:aiosmtpd")
def test_a_real_mail_server_gets_all_of_them_by_one_connection(settings: Settings) -> None:
    editors = [digests.editor() for _ in range(3)]
    digests.article(5)
    inbox = Inbox()
    with mail_server(settings, inbox):
        assert send_due(at=digests.monday_morning()).sent == 3
    assert inbox.sessions == 1
    assert [envelope.rcpt_tos for envelope in inbox.mails] == [[one.email] for one in editors]
    for envelope in inbox.mails:
        assert envelope.mail_from == "numbers@example.com"
        assert b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in envelope.content


@pytest.mark.filterwarnings("ignore::DeprecationWarning:aiosmtpd")
def test_a_mail_server_that_takes_twenty_by_one_connection_gets_all(settings: Settings) -> None:
    for _ in range(45):
        digests.editor()
    digests.article(5)
    inbox = Inbox(most=20)
    with mail_server(settings, inbox):
        sent = send_due(at=digests.monday_morning())
    assert (sent.sent, sent.failed) == (45, 0)
    assert len(inbox.mails) == 45
    assert inbox.sessions == 3


class Greylist(Inbox):
    """Answers the address of a recipient with a code, once or always."""

    def __init__(self, answers: dict[str, list[str]]) -> None:
        super().__init__()
        self._answers = answers  # by address, one for each try

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        answers = self._answers.get(address)
        if answers:
            return answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"


@pytest.mark.filterwarnings("ignore::DeprecationWarning:aiosmtpd")
def test_a_digest_that_is_refused_for_now_is_sent_by_the_next_run(settings: Settings) -> None:
    now, ever, well = (digests.editor() for _ in range(3))
    digests.article(5)
    inbox = Greylist({now.email: ["451 Try later"], ever.email: ["550 No such user"]})
    with mail_server(settings, inbox):
        sent = send_due(at=digests.monday_morning())
        assert (sent.sent, sent.failed) == (1, 2)
        sent = send_due(at=digests.monday_morning(9))
        assert (sent.sent, sent.failed) == (1, 0)
        assert send_due(at=digests.monday_morning(10)).sent == 0
    assert [envelope.rcpt_tos for envelope in inbox.mails] == [[well.email], [now.email]]


def test_readers_are_found_in_the_order_of_their_keys() -> None:
    editors = [digests.editor() for _ in range(3)]
    assert [reader.user for reader in readers.readers_of(digests.week())] == editors
