"""Tokens of the JSON API: each lets a program ask for what one user may see."""

import secrets
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from readtrack import parts
from readtrack.models.rows import OwnRow

parts.require("readtrack.api")

SIGN = "rt_"  # every token begins so, which programs that look for leaked secrets can find
PREFIX_LENGTH = 8
USE_NOTED_EVERY = timedelta(hours=1)


class NewToken(NamedTuple):
    """A token that was just made, and its row. The text is stored nowhere."""

    text: str
    row: "ApiToken"


class ApiToken(OwnRow):
    """A token of a user for the JSON API. Only its hash is stored.

    The text has 256 random bits, so nobody finds it by trying, and a fast hash is as safe as a slow
    one: slow hashes protect texts that people choose. There is no limit to wrong tries for the same
    reason. Rows are found by the hash, so the time of an answer tells nothing of the text.
    """

    # Users may be in another database, so the database knows nothing of this key, and a receiver
    # deletes the tokens of a deleted user.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=pgettext_lazy("API token", "user"),
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="+",
    )
    name = models.CharField(
        pgettext_lazy("API token", "name"), max_length=100, help_text=_("What the token is for.")
    )
    # The first characters of the text, by which people know the token.
    prefix = models.CharField(_("begins with"), max_length=PREFIX_LENGTH, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)  # SHA-256, hexadecimal
    created = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    # Written once in USE_NOTED_EVERY at most, because each request would write a row.
    last_used = models.DateTimeField(_("last used"), null=True, editable=False)
    expires = models.DateTimeField(
        _("expires"), null=True, blank=True, help_text=_("Without a time it does not expire.")
    )
    revoked = models.DateTimeField(_("revoked"), null=True, editable=False)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ("-created",)
        default_permissions = ("add",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def set_text(self) -> str:
        """Gives the token a new text, and returns the text. The row is not saved."""
        text = SIGN + secrets.token_urlsafe(32)
        self.prefix = text[:PREFIX_LENGTH]
        self.digest = digest_of(text)
        return text

    def is_valid(self, *, at: datetime | None = None) -> bool:
        """Returns False for a token that is revoked or has expired."""
        if self.revoked is not None:
            return False
        return self.expires is None or (at or timezone.now()) < self.expires


def digest_of(text: str) -> str:
    """Returns the hash under which a token is stored."""
    # A header may have characters that have no bytes of their own.
    return sha256(text.encode(errors="replace")).hexdigest()


def make_token(user: Any, name: str, *, expires: datetime | None = None) -> NewToken:
    """Saves a new token of the user, and returns it with its text."""
    row = ApiToken(user_id=user.pk, name=name, expires=expires)
    text = row.set_text()
    row.save()
    return NewToken(text, row)
