"""Who gets a digest, in which language and time zone."""

import zoneinfo
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.utils.timezone import get_default_timezone
from django.utils.translation import check_for_language

from readtrack.access import may_view_numbers
from readtrack.conf import logger
from readtrack.digest.options import digest_options
from readtrack.digest.periods import DigestPeriod
from readtrack.numbers import groups
from readtrack.numbers.access import may_view_report_of
from readtrack.numbers.scope import Scope
from readtrack.store import scripts
from readtrack.subjects import NO_VALUE, label_of


@dataclass(frozen=True, slots=True)
class Reader:
    """A user who gets a digest."""

    user: Any
    author: str  # the user's primary key for the numbers of their own objects; "" for the site's
    language: str
    zone: tzinfo

    @property
    def key(self) -> str:
        """Returns the user's primary key as text."""
        return str(self.user.pk)

    @property
    def address(self) -> str:
        """Returns the user's e-mail address; "" without one."""
        return str(getattr(self.user, self.user.get_email_field_name(), "") or "")

    @property
    def can_be_sent(self) -> bool:
        """Returns True for an active user with an e-mail address."""
        return bool(self.user.is_active and self.address)


def readers_of(period: DigestPeriod) -> Iterator[Reader]:
    """Yields those who get the digest of the period, editors first; nobody twice.

    Those who have stopped it are among them.
    """
    editors = set()
    for user in _candidates():
        reader = reader_of(user)
        if reader is not None and reader.can_be_sent and not reader.author:
            editors.add(reader.key)
            yield reader
    if not digest_options().authors:
        return
    for user in _authors(period):
        reader = reader_of(user)
        if reader is not None and reader.can_be_sent and reader.key not in editors:
            yield reader


def reader_of(user: Any) -> Reader | None:
    """Returns the user as a reader; None for a user who may see no numbers.

    Who may see the whole site's numbers gets these, and other users get those of their own objects.
    """
    author = "" if may_view_numbers(user) else str(user.pk)
    if author and not may_view_report_of(user, author):
        return None
    language, zone = _locale_of(user)
    return Reader(user, author, language, zone)


def _candidates() -> Iterable[Any]:
    """Returns the users who may be editors: those that the site names, or else active staff."""
    find_users = digest_options().find_users
    if find_users is not None:
        return find_users()
    model = get_user_model()
    fields = {field.name for field in model._meta.get_fields()}
    flags = {"is_active": True, "is_staff": True}
    conditions = {name: value for name, value in flags.items() if name in fields}
    return _in_portions(model._default_manager.filter(**conditions).order_by("pk"))


def _in_portions(rows: "QuerySet[Any]") -> Iterator[Any]:
    """Yields the rows, which are ordered by their keys, without all of them in memory at once.

    Not by a cursor, which would be open as long as mails are sent.
    """
    portion = [*rows[: scripts.SLICE]]
    while portion:
        yield from portion
        is_last = len(portion) < scripts.SLICE
        portion = [] if is_last else [*rows.filter(pk__gt=portion[-1].pk)[: scripts.SLICE]]


def _authors(period: DigestPeriod) -> Iterator[Any]:
    """Yields the users whose objects were viewed in the period or in the one before."""
    scope = Scope.parse(period.parameters)
    labels = [label_of(model) for model in scope.models]
    rows = groups.rows_of_models(scope, labels, ["author"]).get("author", [])
    model = get_user_model()
    keys = []
    for row in rows:
        try:
            keys.append(model._meta.pk.to_python(row.name))
        except NO_VALUE:  # views without an author, or of one with a long key
            continue
    for portion in scripts.sliced(keys):
        yield from model._default_manager.filter(pk__in=portion).order_by("pk")


def _locale_of(user: Any) -> tuple[str, tzinfo]:
    """Returns the language and the time zone of the user, by default those of the site."""
    find_locale = digest_options().find_locale
    if find_locale is None:
        return settings.LANGUAGE_CODE, get_default_timezone()
    try:
        language, zone = find_locale(user)
        is_language = check_for_language(language)
        # A field of a profile may hold a time zone itself, and not its name.
        time_zone = zone if isinstance(zone, tzinfo) else zoneinfo.ZoneInfo(zone)
    except Exception:  # the site's function fails for this user, or knows no such time zone
        logger.exception("%s failed; the digest has the site's locale.", digest_options().locale)
        return settings.LANGUAGE_CODE, get_default_timezone()
    return language if is_language else settings.LANGUAGE_CODE, time_zone
