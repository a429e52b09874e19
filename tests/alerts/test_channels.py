"""Alerts reach a signal, mailboxes and a signed webhook: each once, and later where one failed."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from threading import enumerate as threads
from typing import Any

import pytest
from django.core import mail
from django.db import connections
from django.test import RequestFactory
from pytest_django import Settings
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from readtrack import buckets
from readtrack.alerts import channels, records, run, signals
from readtrack.alerts.models import Alert, AlertDelivery
from readtrack.alerts.records import PAUSES, Sighting
from readtrack.numbers import mailing
from tests.alerts.conftest import use_alerts
from tests.alerts.receiver import SECRET, Receiver, receiver
from tests.support import digests
from tests.support.waiting import comes_true

pytestmark = pytest.mark.django_db
STORY = Sighting(
    Alert.Kind.STORY,
    subject="site.post:1",
    title="A\nstory",
    views=1234,
    usual=200.0,
    minutes=3,
    url="https://www.example.com/admin/1",
)
MINUTE = timedelta(minutes=1)
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "alerts.md"
CODES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def begin(sighting: Sighting = STORY, **values: Any) -> Alert:
    alert = records.begin(sighting, channels=channels.channels(), at=buckets.now(), **values)
    assert alert is not None
    return alert


def delivery(channel: str) -> AlertDelivery:
    return AlertDelivery.objects.get(channel=channel)


@contextmanager
def listening(receive: Any) -> Iterator[None]:
    signals.alert.connect(receive)
    yield
    signals.alert.disconnect(receive)


def test_the_webhook_gets_what_a_library_of_standard_webhooks_takes(webhook: Receiver) -> None:
    alert = begin()
    run.tell_due(at=buckets.now())
    [(path, headers, body)] = webhook.received
    assert path == "/alerts"
    payload: Any = Webhook(SECRET).verify(body, headers)
    assert payload["type"] == "readtrack.alert.story"
    assert payload["data"]["views"] == 1234
    assert payload["data"]["url"] == alert.url
    assert payload["data"]["text"] == "6.2 × the usual views: A story"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body.replace(b"1234", b"9999"), headers)
    run.tell_due(at=buckets.now() + 100 * MINUTE)
    assert len(webhook.received) == 1


def test_a_chat_gets_a_text_that_mentions_nobody(settings: Settings) -> None:
    with receiver() as chat:
        use_alerts(settings, webhook={"url": chat.url, "form": "text"})
        begin(STORY._replace(title="<!channel> @all\nA & B", url=f"{STORY.url}/a@b/"))
        run.tell_due(at=buckets.now())
    [(_, headers, body)] = chat.received
    assert headers["Content-Type"] == "application/json"
    assert not [name for name in headers if name.lower().startswith("webhook-")]
    assert json.loads(body) == {
        "text": "6.2 × the usual views: \u2039!channel\u203a \uff20all A & B\n\n"
        "1,234 views in the last 3 minutes, where 200 are usual.\n\n"
        "https://www.example.com/admin/1/a@b/"
    }


def test_a_mail_does_not_say_that_no_views_are_usual(settings: Settings) -> None:
    use_alerts(settings)
    begin(STORY._replace(usual=0.28))
    run.tell_due(at=buckets.now())
    [message] = mail.outbox
    assert "1,234 views in the last 3 minutes, where < 1 are usual." in message.body


def test_a_mail_has_the_page_to_look_at_in_the_language_of_the_site(settings: Settings) -> None:
    use_alerts(settings, mail=["a@example.com", "b@example.com"])
    begin()
    run.tell_due(at=buckets.now())
    [message] = mail.outbox
    assert message.to == ["a@example.com", "b@example.com"]
    assert message.subject == "[Django] 6.2 × the usual views: A story"
    assert "1,234 views in the last 3 minutes, where 200 are usual." in message.body
    assert str(message.body).endswith("https://www.example.com/admin/1")
    settings.LANGUAGE_CODE = "de"
    other = begin(STORY._replace(subject="site.post:2"))
    channels.tell(other, "mail")
    assert "1.234 Aufrufe" in str(mail.outbox[1].body)


def test_a_mail_server_that_never_answers_keeps_nothing_waiting_for_ever(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailing, "TIMEOUT", 0.2)
    use_alerts(settings)
    begin()
    with digests.silent_mail_server(settings):
        run.tell_due(at=buckets.now())
    assert "timed out" in delivery("mail").error


def test_without_addresses_managers_get_the_mail(settings: Settings) -> None:
    use_alerts(settings, mail=None)
    settings.MANAGERS = []
    assert channels.channels() == ["signal"]
    settings.MANAGERS = [("Ed", "ed@example.com")]
    begin()
    run.tell_due(at=buckets.now())
    assert [message.to for message in mail.outbox] == [["ed@example.com"]]
    use_alerts(settings, mail=[])
    assert channels.channels() == ["signal"]


def test_a_receiver_that_raises_keeps_no_other_channel_from_telling(webhook: Receiver) -> None:
    heard = []

    def fail(alert: Alert, **kwargs: Any) -> None:
        heard.append(alert)
        raise ValueError

    with listening(fail):
        alert = begin()
        run.tell_due(at=buckets.now())
    assert heard == [alert]
    assert len(webhook.received) == len(mail.outbox) == 1


def test_a_mail_server_that_is_gone_keeps_no_other_channel_from_telling(
    webhook: Receiver, settings: Settings
) -> None:
    digests.use_mail_server(settings, "django.core.mail.backends.smtp.EmailBackend", port=1)
    begin()
    run.tell_due(at=buckets.now())
    assert len(webhook.received) == 1
    assert "refused" in delivery("mail").error
    digests.use_mail_server(settings, "django.core.mail.backends.locmem.EmailBackend")
    run.tell_due(at=buckets.now() + 1.1 * MINUTE)
    assert len(mail.outbox) == 1
    assert len(webhook.received) == 1


def test_a_webhook_that_fails_is_tried_again_after_growing_pauses_and_given_up(
    webhook: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    webhook.status = 500
    begin()
    at = buckets.now()
    run.tell_due(at=at)
    for number, pause in enumerate(PAUSES, 1):
        assert len(webhook.received) == number
        run.tell_due(at=at + 0.9 * pause * MINUTE)
        assert len(webhook.received) == number
        at += (pause + 0.1) * MINUTE
        run.tell_due(at=at)
    assert len(webhook.received) == len(PAUSES) + 1
    assert "was given up: HTTP 500" in caplog.text
    run.tell_due(at=at + timedelta(days=9))
    assert len(webhook.received) == len(PAUSES) + 1
    assert len({headers["Webhook-Id"] for _, headers, _ in webhook.received}) == 1
    assert delivery("webhook").sent is None
    assert len(mail.outbox) == 1


def test_a_redirect_is_not_followed(webhook: Receiver) -> None:
    for status in (301, 302, 303, 307, 308):
        webhook.status = status
        webhook.headers = {"Location": f"{webhook.url}/elsewhere"}
        assert channels.tell(begin(STORY._replace(subject=str(status))), "webhook") == (
            f"HTTP {status}"
        )
    assert {path for path, _, _ in webhook.received} == {"/alerts"}


def test_a_receiver_that_is_silent_is_left_after_some_seconds(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        use_alerts(settings, webhook={"url": url, "secret": SECRET})
        assert "no whole answer" in channels.tell(begin(), "webhook")


def test_a_webhook_that_is_taken_away_gets_nothing(webhook: Receiver, settings: Settings) -> None:
    alert = begin()
    use_alerts(settings)
    assert channels.tell(alert, "webhook")
    assert webhook.received == []


def test_what_a_killed_process_has_begun_another_one_tells(webhook: Receiver) -> None:
    begin()  # killed before it told anything
    claims = records.claimed(at=buckets.now())
    assert next(claims).channel == "signal"  # killed while it told this
    heard: list[Alert] = []

    def receive(alert: Alert, **kwargs: Any) -> None:
        heard.append(alert)

    with listening(receive):
        run.tell_due(at=buckets.now())
        assert len(mail.outbox) == len(webhook.received) == 1
        assert heard == []
        run.tell_due(at=buckets.now() + 1.1 * MINUTE)
    assert len(heard) == 1
    assert len(mail.outbox) == len(webhook.received) == 1


def test_what_another_process_tries_after_a_long_time_is_not_tried_here(
    webhook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin()
    seconds = iter(range(0, 1000, 50))
    monkeypatch.setattr(records, "monotonic", lambda: next(seconds))
    at = buckets.now()
    claims = records.claimed(at=at)
    assert [next(claims).channel, next(claims).channel] == ["signal", "mail"]  # 100 s later
    others = [delivery.channel for delivery in records.claimed(at=at + 2 * MINUTE)]
    assert others == ["signal", "webhook"]


@pytest.mark.parametrize("channel", ["signal", "mail", "webhook", "pigeon"])
def test_an_error_of_any_kind_is_noted_and_keeps_no_other_from_being_told(
    webhook: Receiver, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(alert: Alert) -> str:
        raise LookupError("a\0b")

    begin()
    if channel == "pigeon":  # of a newer version
        AlertDelivery.objects.filter(channel="signal").update(channel="pigeon")
    else:
        monkeypatch.setitem(channels.TELLERS, channels.Channel(channel), fail)
    run.tell_due(at=buckets.now())
    assert delivery(channel).error in {
        "LookupError: a b",
        "ValueError: 'pigeon' is not a valid AlertDelivery.Channel",
    }
    assert AlertDelivery.objects.filter(due=None).count() == 2


def test_the_receiver_of_the_documentation_takes_it_and_nothing_else(
    webhook: Receiver, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.ALERT_SECRET = SECRET
    [code] = [code for code in CODES if "def receive(request)" in code]
    names: dict[str, Any] = {}
    exec(code, names)
    channels.tell(begin(), "webhook")
    [(_, headers, body)] = webhook.received
    for sent, status in ((body, 204), (body.replace(b"1234", b"9999"), 401)):
        request = RequestFactory().post("/", sent, content_type="application/json", headers=headers)
        assert names["receive"](request).status_code == status
    assert capsys.readouterr().out == "6.2 × the usual views: A story\n"


@pytest.mark.django_db(transaction=True)
def test_many_processes_that_see_the_same_tell_it_once(webhook: Receiver) -> None:
    begun = []

    def work() -> None:
        at = buckets.now()
        begun.append(records.begin(STORY, channels=channels.channels(), at=at))
        run.tell_due(at=buckets.now() + timedelta(seconds=1))
        connections.close_all()

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 6
    assert len([alert for alert in begun if alert is not None]) == 1
    assert Alert.objects.count() == 1
    assert len(webhook.received) == len(mail.outbox) == 1


def answer_slowly(server: socket.socket, begins: bytes, gone: Event) -> None:
    """Answers one request byte by byte: each byte comes in time, and the whole answer too late."""
    connection, _ = server.accept()
    with connection:
        try:
            connection.sendall(begins)
            for _ in range(40):
                gone.wait(0.05)
                connection.sendall(b"a")
            connection.sendall(b"\r\n\r\n")
        except OSError:  # the one who asked has gone
            gone.set()


@pytest.mark.parametrize(
    ("scheme", "begins"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nX-Long: "),
        ("http", b"HTTP/1.1 200 O"),
        ("http", b"HTTP/1.1 500 No\r\nX-Long: "),
        ("https", b"\x16\x03\x03\x40\x00"),  # a record of TLS that never ends
    ],
)
def test_a_webhook_that_answers_byte_by_byte_is_waited_for_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, scheme: str, begins: bytes
) -> None:
    monkeypatch.setattr(channels, "TIMEOUT", 0.3)
    gone = Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/"
        use_alerts(settings, mail=[], webhook={"url": url, "secret": SECRET})
        slow = Thread(target=answer_slowly, args=[server, begins, gone])
        slow.start()
        alert = Alert(pk=1, kind=Alert.Kind.REDIS, started=buckets.now())
        problem = channels.tell(alert, AlertDelivery.Channel.WEBHOOK)
        slow.join()
    assert problem == "TimeoutError: no whole answer within 0.3 seconds"
    assert gone.is_set()  # nothing goes on reading
    assert comes_true(lambda: all(one.name != "readtrack-webhook" for one in threads()))


def test_a_name_that_takes_long_to_be_found_is_waited_for_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Event()

    def find(*args: Any, **options: Any) -> Any:
        found.wait(60)
        raise OSError("no such host")

    monkeypatch.setattr(channels, "TIMEOUT", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", find)
    use_alerts(settings, mail=[], webhook={"url": "https://hook.example/", "secret": SECRET})
    alert = Alert(pk=1, kind=Alert.Kind.REDIS, started=buckets.now())
    problem = channels.tell(alert, AlertDelivery.Channel.WEBHOOK)
    found.set()
    assert problem == "TimeoutError: no whole answer within 0.1 seconds"
    assert comes_true(lambda: all(one.name != "readtrack-webhook" for one in threads()))
