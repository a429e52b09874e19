"""The tables of alerts."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from readtrack import parts
from readtrack.models.fields import ExactCharField
from readtrack.models.rows import OwnRow
from readtrack.numerals import exact

parts.require("readtrack.alerts")

NAME_LENGTH = 220  # characters: a kind, a colon, and a subject as columns have it


class Alert(OwnRow):
    """One alert: what happened, when it began, and when it was over.

    No two open alerts are about the same thing, so that two processes that see it tell it once.
    """

    class Kind(models.TextChoices):
        """The kinds of alerts, named for an editor by what they mean for the numbers. The details
        have the cause.
        """

        STORY = "story", _("views far above the usual")
        SITE = "site", _("views of the site far below the usual")
        FLUSH = "flush", _("numbers are not saved")
        REDIS = "redis", _("views are not counted")

    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices)
    name = ExactCharField(max_length=NAME_LENGTH, editable=False)  # kind and subject
    # True, or NULL once it is over: a unique constraint lets any number of rows have NULL.
    is_open = models.BooleanField(null=True, default=True, editable=False)
    subject = models.TextField(blank=True, editable=False)  # of a story, else ""
    title = models.TextField(_("title"), blank=True)  # of a story, else ""
    views = models.PositiveBigIntegerField(_("views"), null=True)
    usual = models.FloatField(_("usual"), null=True)  # views in the same time
    minutes = models.PositiveIntegerField(_("minutes"), null=True)  # in which it had the views
    details = models.TextField(_("details"), blank=True)  # of a late flush, or of Redis
    url = models.TextField(blank=True)  # of the page to look at
    started = models.DateTimeField(_("started"), default=timezone.now)
    ended = models.DateTimeField(_("ended"), null=True)

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        ordering = ("-started", "-pk")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["name", "is_open"], name="readtrack_alert_once")
        ]

    def __str__(self) -> str:
        return self.title or self.get_kind_display()

    @property
    def usual_text(self) -> str:
        """Returns the usual views rounded, as `1,234`. Fewer than one are `< 1`, unknown ones
        "".
        """
        if self.usual is None:
            return ""
        whole = round(self.usual)
        if whole == 0:
            return "< 1"
        return exact(whole)


class AlertDelivery(OwnRow):
    """What became of an alert in one channel. A row is there from the moment the alert is, so that
    a killed process leaves nothing untold.
    """

    class Channel(models.TextChoices):
        """The ways in which alerts are told."""

        SIGNAL = "signal"
        MAIL = "mail"
        WEBHOOK = "webhook"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.CharField(max_length=10, choices=Channel.choices)
    tries = models.PositiveSmallIntegerField(default=0)
    # When it is tried next; NULL once it was sent or given up.
    due = models.DateTimeField(null=True, default=timezone.now, db_index=True)
    sent = models.DateTimeField(null=True)
    error = models.TextField(blank=True)  # of the last try

    class Meta:
        default_permissions = ()
        unique_together = [("alert", "channel")]

    def __str__(self) -> str:
        return f"{self.alert_id} {self.channel}"
