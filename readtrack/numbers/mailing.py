"""The connection by which mails are sent."""

from typing import Any

from django.core import mail

TIMEOUT = 10.0  # seconds that a mail server may take for each answer


def mail_connection() -> Any:
    """Returns a connection to the site's mail server, which is not open yet.

    It has TIMEOUT unless the site has chosen a time-out: a server that never answers would keep the
    flushes of the same process waiting for ever.
    """
    if hasattr(mail, "mailers"):  # Django 6.1 and later
        connection: Any = mail.mailers.default
    else:
        connection = mail.get_connection()
    # Django's backend for SMTP has None without EMAIL_TIMEOUT.
    if getattr(connection, "timeout", TIMEOUT) is None:
        connection.timeout = TIMEOUT
    return connection
