"""The ways in which an alert is told: a signal, a mail, a webhook."""

import base64
import hmac
import json
from collections.abc import Callable
from time import time
from urllib.request import Request

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils import translation

from readtrack import __version__
from readtrack.alerts import signals
from readtrack.alerts.models import Alert, AlertDelivery
from readtrack.alerts.options import alert_settings
from readtrack.alerts.posting import post
from readtrack.alerts.wording import chat_text_of, payload_of, subject_of, text_of
from readtrack.lines import one_line
from readtrack.numbers.mailing import mail_connection

TIMEOUT = 5.0  # seconds that the webhook may take in all

Channel = AlertDelivery.Channel


def channels() -> list[AlertDelivery.Channel]:
    """Returns the channels that ALERTS asks for."""
    chosen = [Channel.SIGNAL]
    mail = alert_settings().mail
    if mail or (mail is None and settings.MANAGERS):
        chosen.append(Channel.MAIL)
    if alert_settings().webhook:
        chosen.append(Channel.WEBHOOK)
    return chosen


def tell(alert: Alert, channel: str) -> str:
    """Tells the alert in this channel. Returns why that failed; "" if it did not."""
    try:
        with translation.override(settings.LANGUAGE_CODE):
            return TELLERS[Channel(channel)](alert)
    except Exception as error:  # each backend of mails has errors of its own
        return one_line(f"{type(error).__name__}: {error}")


def _send_signal(alert: Alert) -> str:
    # Django logs the errors of receivers.
    signals.alert.send_robust(sender=None, alert=alert)
    return ""


def _send_mail(alert: Alert) -> str:
    sender = None  # that of the site
    addresses = alert_settings().mail
    if addresses is None:
        sender = settings.SERVER_EMAIL
        addresses = _managers()
    subject = f"{settings.EMAIL_SUBJECT_PREFIX}{subject_of(alert)}"
    message = EmailMessage(subject, text_of(alert), sender, [*addresses])
    mail_connection().send_messages([message])
    return ""


def _managers() -> list[str]:
    """Returns the addresses of MANAGERS, which are pairs of a name and an address in Django 5.2."""
    return [one if isinstance(one, str) else one[1] for one in settings.MANAGERS]


def _post(alert: Alert) -> str:
    """Sends the alert to the webhook in the form that ALERTS asks for."""
    if not alert_settings().webhook:
        return "ALERTS has no webhook any more"
    if alert_settings().form == "text":
        body = json.dumps({"text": chat_text_of(alert)}).encode()
        return _post_body(body, headers={})
    body = json.dumps(payload_of(alert)).encode()
    return _post_body(body, headers=_signed_headers(alert, body))


def _signed_headers(alert: Alert, body: bytes) -> dict[str, str]:
    """Returns the headers of Standard Webhooks.

    The id is the same in each try, so that a receiver can tell that it has the alert already.
    """
    message_id = f"readtrack_alert_{alert.pk}_{int(alert.started.timestamp())}"
    timestamp = str(int(time()))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature(body, message_id=message_id, timestamp=timestamp),
    }


def _post_body(body: bytes, *, headers: dict[str, str]) -> str:
    """Posts JSON to the webhook. Returns why that failed; "" if it did not."""
    request = Request(  # noqa: S310 - options lets only http and https pass
        alert_settings().webhook,
        data=body,
        headers={
            "Content-Type": "application/json",
            "User-Agent": f"readtrack/{__version__}",
            **headers,
        },
    )
    return post(request, seconds=TIMEOUT)


def signature(body: bytes, *, message_id: str, timestamp: str) -> str:
    """Returns the value of the header `webhook-signature`."""
    signed = b".".join([message_id.encode(), timestamp.encode(), body])
    digest = hmac.digest(alert_settings().key, signed, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


TELLERS: dict[AlertDelivery.Channel, Callable[[Alert], str]] = {
    Channel.SIGNAL: _send_signal,
    Channel.MAIL: _send_mail,
    Channel.WEBHOOK: _post,
}
