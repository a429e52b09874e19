"""The readers of digests."""

from django.db import models

from readtrack import parts
from readtrack.models.fields import ExactCharField
from readtrack.models.rows import OwnRow

parts.require("readtrack.digest")


class DigestReader(OwnRow):
    """A user who has got a digest, or has stopped it.

    A row is about a user by primary key, and not a foreign key, because users may be in another
    database.
    """

    user = ExactCharField(max_length=200, primary_key=True)  # primary key of the user as text
    is_stopped = models.BooleanField(default=False)
    # The last day of the last digest. It is written before that digest is sent.
    sent_until = models.DateField(null=True)
    was_empty = models.BooleanField(default=False)  # nothing was viewed on the days of that digest

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.user)
