"""`manage.py readtrack digest`."""

from argparse import ArgumentTypeError
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser
from django.utils.timezone import get_default_timezone

from readtrack import buckets
from readtrack.conf import conf
from readtrack.digest import readers, sending
from readtrack.digest.options import EVERY, Every, digest_options, digest_problems
from readtrack.digest.periods import DigestPeriod, next_due
from readtrack.digest.readers import Reader
from readtrack.doctor.wording import counted
from readtrack.management.subcommands.base import Subcommand

NOT_SET = "it is not set. It needs at least {'site': 'https://www.example.com'}"
NOBODY = """\
Nobody gets a digest. It is for active users with an e-mail address who may see numbers: for staff, or for whom 'users'
names; with 'authors' also for authors. Whoever has stopped the mails is left out.
"""


class Digest(Subcommand):
    """Sends the numbers of the last week or day by mail."""

    name = "digest"
    needs_redis = False  # the numbers of a past period are in SQL
    help = """\
Sends the numbers of the last week or day by mail, to editors and authors who do not have them yet.

  manage.py readtrack digest              # for cron, once an hour: sends what is due, at 7 o'clock
  manage.py readtrack digest --dry-run    # prints the mails, whether they are due or not
  manage.py readtrack digest --user ann   # sends one at once, unless ann has it already

Nobody gets a digest twice, unless --again is given. With --dry-run nothing is sent, and nothing is noted.
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="print the mails as text")
        parser.add_argument("--user", metavar="NAME", help="only for this user, at once")
        parser.add_argument(
            "--again",
            action="store_true",
            help="with --user: also if the user has it, or has stopped the mails",
        )
        parser.add_argument("--every", choices=EVERY, help="a week or a day; by default as DIGEST")
        parser.add_argument(
            "--at", type=_day, metavar="DATE", help="the last week or day before DATE, at once"
        )

    def handle(
        self,
        *,
        dry_run: bool,
        user: str | None,
        again: bool,
        every: Every | None,
        at: date | None,
        **options: Any,
    ) -> str:
        if again and not user:
            raise CommandError("--again needs --user.")
        problems = digest_problems() if conf.of_part("DIGEST") else [NOT_SET]
        if problems:
            raise CommandError(f"READTRACK['DIGEST'] cannot be used: {problems[0]}.")
        noon = datetime.combine(at, time(12), get_default_timezone()) if at else None
        period = sending.period_of(every, at=noon)
        # Whoever has the digest of a day to come would get no other one until then.
        if period.end > buckets.now():
            raise CommandError("The days before --at are not over.")
        if dry_run:
            return _mails(_readers(user, period), period)
        is_at_once = any((user, at, every))
        if not is_at_once:
            return _result_of_due(sending.send_due())
        return _result(sending.send(_readers(user, period), period, is_again=again))


def _result(sent: sending.Sent) -> str:
    """Returns what to print. Raises CommandError if a mail failed."""
    number = counted(sent.sent, "mail")
    if sent.failed:
        raise CommandError(f"Sent {number}; {sent.failed} failed, see the log.")
    return f"Sent {number}."


def _result_of_due(sent: sending.Sent) -> str:
    """Returns what to print of the mails that were due, and why there are none if there are none.

    Raises CommandError if a mail failed.
    """
    text = _result(sent)
    if sent.sent:
        return text
    if sent.has_to_wait:
        return f"{text} Some wait for a full flush; run: manage.py readtrack flush"
    zone = get_default_timezone()
    due = next_due(digest_options().every, zone, at=buckets.now())
    return f"{text} The next are due on {due.astimezone(zone):%A, %Y-%m-%d, at %H:%M} ({zone})."


def _readers(name: str | None, period: DigestPeriod) -> Sequence[Reader]:
    """Returns the readers of the period, or the user called `name`. Raises CommandError for a user
    who gets no digest.
    """
    if name is None:
        return [*readers.readers_of(period)]
    model = get_user_model()
    try:
        user = model._default_manager.get_by_natural_key(name)
    except model.DoesNotExist as error:
        raise CommandError(f"There is no user {name!r}.") from error
    reader = readers.reader_of(user)
    if reader is None:
        raise CommandError(f"{name!r} may see no numbers.")
    if not reader.can_be_sent:
        raise CommandError(f"{name!r} has no e-mail address, or is not active.")
    return [reader]


def _mails(to: Sequence[Reader], period: DigestPeriod) -> str:
    """Returns the mails as text."""
    texts = [
        f"To: {mail.to[0]}\nSubject: {mail.subject}\n\n{mail.body}"
        for mail in sending.letters(to, period)
    ]
    return "\n".join(texts) or NOBODY


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no day such as 2026-11-23") from error
