"""The tables of what is stored by time."""

from datetime import date

from django.db import models
from django.utils.translation import gettext_lazy as _

from readtrack.models.rows import OwnRow


class Note(OwnRow):
    """A note on the charts, such as "newsletter sent"."""

    # The default is today in TIME_ZONE, which Django makes the time zone of the process.
    day = models.DateField(_("day"), default=date.today)
    text = models.CharField(_("text"), max_length=200)

    class Meta:
        verbose_name = _("note")
        verbose_name_plural = _("notes on the charts")
        ordering = ("day", "pk")
        # The same note twice on a day is one note.
        constraints = [
            models.UniqueConstraint(fields=["day", "text"], name="readtrack_note_once_a_day")
        ]

    def __str__(self) -> str:
        return self.text
