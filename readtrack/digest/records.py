"""Which digests were sent, and who has stopped them.

Users are given by their primary keys as text.
"""

from collections.abc import Sequence
from datetime import date

from django.db.models import Q

from readtrack.digest.models import DigestReader
from readtrack.sql import databases
from readtrack.store import scripts


def states_of(users: Sequence[str]) -> dict[str, DigestReader]:
    """Returns what is stored of the users, by primary key as text. Makes one query for 1,000."""
    states: dict[str, DigestReader] = {}
    for portion in scripts.sliced(users):
        for row in databases.rows(DigestReader).filter(user__in=portion):
            states[row.user] = row
    return states


def claim(user: str, last_day: date, *, is_empty: bool) -> bool:
    """Notes that the user gets the digest up to that day. Returns True for one process only.

    It is False for a digest that is sent or claimed already, and for a user who has stopped it.
    """
    rows = databases.rows(DigestReader)
    rows.bulk_create([DigestReader(user=user)], ignore_conflicts=True)
    unsent = rows.filter(Q(sent_until=None) | Q(sent_until__lt=last_day))
    claimed = unsent.filter(user=user, is_stopped=False)
    return claimed.update(sent_until=last_day, was_empty=is_empty) == 1


def release(user: str, last_day: date, *, before: date | None, was_empty: bool) -> None:
    """Takes a claim back, so that the next run sends the digest.

    `before` and `was_empty` are what was stored of the user before the claim.
    """
    claimed = databases.rows(DigestReader).filter(user=user, sent_until=last_day)
    claimed.update(sent_until=before, was_empty=was_empty)


def has_stopped(user: str) -> bool:
    """Returns True if the user with that primary key (as text) has stopped the digests."""
    return databases.rows(DigestReader).filter(user=user, is_stopped=True).exists()


def set_stopped(user: str, *, is_stopped: bool) -> None:
    """Stops the digests of the user with that primary key (as text), or takes that back."""
    databases.rows(DigestReader).update_or_create(user=user, defaults={"is_stopped": is_stopped})


def forget(user: str) -> None:
    """Deletes the row of a user who is gone, also that the user has stopped the digests."""
    databases.rows(DigestReader).filter(user=user).delete()


def erase(user: str, *, is_dry_run: bool = False) -> int:
    """Erases when the user got the last digest. Returns the number of rows, 0 or 1.

    That the user has stopped the digests stays, or else they would begin again.
    """
    rows = databases.rows(DigestReader).filter(user=user, is_stopped=False)
    if is_dry_run:
        return rows.count()
    number, _ = rows.delete()
    return number
