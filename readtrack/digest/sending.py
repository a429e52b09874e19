"""Sends the digests that are due, each of them once.

A digest is claimed in SQL before it is sent, by an UPDATE that succeeds for one process only. So
it is never sent twice. A process that is killed between the two leaves out the digest, and so does
a mail server that refuses it for good: a digest that is missing is in the dashboard as well, and
one that comes every hour would be stopped. A server that refuses it for now, with a code from 400
to 499, has not taken it, so that the next run sends it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from smtplib import SMTPRecipientsRefused, SMTPResponseException
from typing import Any

from readtrack import buckets
from readtrack.conf import conf, logger
from readtrack.digest import readers, records
from readtrack.digest.contents import Contents, contents_of
from readtrack.digest.mail import letter
from readtrack.digest.models import DigestReader
from readtrack.digest.options import Every, digest_options
from readtrack.digest.periods import DigestPeriod, last_period, periods_of
from readtrack.digest.readers import Reader
from readtrack.numbers.mailing import mail_connection
from readtrack.sql import runs
from readtrack.store import scripts

# Servers take a limited number of mails by one connection, and the first one above is lost: it is
# claimed already.
MAILS_OF_CONNECTION = 20


@dataclass(slots=True)
class Sent:
    """What became of the digests of one run."""

    sent: int = 0
    failed: int = 0  # the mail server, or the site's own code, did not take them
    has_to_wait: bool = False  # for a full flush, which stores the numbers of the days


@dataclass(slots=True)
class _Contents:
    """The contents of a period. Those of the site are computed for the first reader only."""

    period: DigestPeriod
    _of_site: list[Contents] = field(default_factory=list)

    def of(self, reader: Reader) -> Contents:
        if reader.author:
            return contents_of(self.period, author=reader.author)
        if not self._of_site:
            self._of_site.append(contents_of(self.period))
        return self._of_site[0]


def send_due(*, at: datetime | None = None) -> Sent:
    """Sends the digests that are due and not sent yet. Does nothing without DIGEST.

    They wait for a full flush after their days, or else they would lack what was not stored. Makes
    no query at a time when none is due in any time zone.
    """
    now = buckets.now(at)
    result = Sent()
    if not conf.of_part("DIGEST"):
        return result
    for period in periods_of(digest_options().every, at=now):
        if not _is_stored(period):
            logger.info("The digests wait for a full flush.")
            result.has_to_wait = True
            continue
        sent = send(_due(period, at=now), period)
        result.sent += sent.sent
        result.failed += sent.failed
    return result


def _is_stored(period: DigestPeriod) -> bool:
    """Returns True if a full flush has stored the numbers of the period."""
    last_full_flush = runs.last_good(is_full=True)
    return last_full_flush is not None and last_full_flush.began >= period.end


def _due(period: DigestPeriod, *, at: datetime) -> Iterator[Reader]:
    """Yields the readers for whom the digest of the period is due."""
    for reader in readers.readers_of(period):
        if period.is_due(reader.zone, at=at):
            yield reader


def send(to: Iterable[Reader], period: DigestPeriod, *, is_again: bool = False) -> Sent:
    """Sends the digest of the period to those of the readers who do not have it yet.

    With `is_again` it is also sent to those who have it, and to those who have stopped it.
    """
    result = Sent()
    connection = mail_connection()
    contents = _Contents(period)
    try:
        for reader, state in _waiting(to, period, is_again=is_again):
            # Opened before a digest is claimed, so that none is left out if there is no server.
            connection.open()
            _send_one(reader, contents, state, connection, result=result, is_again=is_again)
    except OSError:
        logger.exception("The mail server does not answer; the digests wait for the next run.")
    finally:
        connection.close()
    return result


def letters(to: Iterable[Reader], period: DigestPeriod) -> Iterator[Any]:
    """Yields the mails that the readers would get, without those who have stopped them."""
    listed = [*to]
    stored = _stored(listed)
    contents = _Contents(period)
    for reader in listed:
        state = stored.get(reader.key)
        if state is None or not state.is_stopped:
            yield letter(contents.of(reader), reader)


def preview(user: Any) -> str | None:
    """Returns the HTML of the user's last digest; None for a user who gets none.

    A user without an e-mail address and one who has stopped the digests can see it.
    """
    reader = readers.reader_of(user)
    if reader is None:
        return None
    period = period_of(None, at=None)
    message = letter(contents_of(period, author=reader.author), reader)
    [alternative] = message.alternatives
    return str(alternative[0])


def period_of(every: Every | None, *, at: datetime | None) -> DigestPeriod:
    """Returns the last period before that time, by default the site's, before now."""
    return last_period(every or digest_options().every, at=buckets.now(at))


def _stored(listed: Sequence[Reader]) -> dict[str, DigestReader]:
    """Returns what is stored of the readers, by their keys."""
    return records.states_of([reader.key for reader in listed])


def _waiting(
    to: Iterable[Reader], period: DigestPeriod, *, is_again: bool
) -> Iterator[tuple[Reader, DigestReader | None]]:
    """Yields those of the readers who do not have the digest yet, with what is stored of them.

    Not all of them are in memory at once.
    """
    left = iter(to)
    while portion := [*islice(left, scripts.SLICE)]:
        stored = {} if is_again else _stored(portion)
        for reader in portion:
            state = stored.get(reader.key)
            if _is_waiting(state, period):
                yield reader, state


def _is_waiting(state: DigestReader | None, period: DigestPeriod) -> bool:
    """Returns True unless the reader has stopped the digest, or has that of the period."""
    if state is None:
        return True
    has_it = state.sent_until is not None and state.sent_until >= period.last_day
    return not (state.is_stopped or has_it)


def _is_refused_for_now(error: Exception) -> bool:
    """Returns True if the mail server has not taken the mail, and may take it later (RFC 5321)."""
    if isinstance(error, SMTPRecipientsRefused):
        codes = [code for code, _message in error.recipients.values()]
    elif isinstance(error, SMTPResponseException):
        codes = [error.smtp_code]
    else:
        return False
    return bool(codes) and all(400 <= code < 500 for code in codes)


def _after_failure(
    error: Exception,
    reader: Reader,
    period: DigestPeriod,
    state: DigestReader | None,
    *,
    is_again: bool,
) -> None:
    """Logs that a digest was not sent. Takes its claim back if the next run can send it."""
    if is_again or not _is_refused_for_now(error):
        logger.exception(
            "The digest of the user %s was not sent. Send it by: readtrack digest --again --user",
            reader.key,
        )
        return
    logger.warning("The digest of the user %s waits for the next run: %s", reader.key, error)
    records.release(
        reader.key,
        period.last_day,
        before=None if state is None else state.sent_until,
        was_empty=state is not None and state.was_empty,
    )


def _send_one(
    reader: Reader,
    contents: _Contents,
    state: DigestReader | None,
    connection: Any,
    *,
    result: Sent,
    is_again: bool,
) -> None:
    """Sends a digest unless another process sends it. A failure is logged; after the claim it is
    not tried again.
    """
    try:
        of_reader = contents.of(reader)
        message = letter(of_reader, reader)
        is_empty = of_reader.is_empty
        if not is_again:
            is_claimed = records.claim(reader.key, of_reader.period.last_day, is_empty=is_empty)
            is_second_empty = is_empty and state is not None and state.was_empty
            if not is_claimed or is_second_empty:
                return
        connection.send_messages([message])
    except Exception as error:
        result.failed += 1
        _after_failure(error, reader, contents.period, state, is_again=is_again)
        connection.close()  # the server may have closed it
    else:
        result.sent += 1
        if result.sent % MAILS_OF_CONNECTION == 0:
            connection.close()
