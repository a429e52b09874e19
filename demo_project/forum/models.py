"""Boards, threads and replies. The setting READTRACK["MODELS"] gives them their dots."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone


class Board(models.Model):
    """A part of the forum. It has a dot while one of its threads is unread."""

    name = models.CharField(max_length=40, unique=True)
    description = models.CharField(max_length=160)

    # Named only for the type checker, whose plugin knows the tests' settings.
    objects: ClassVar[models.Manager["Board"]] = models.Manager()

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("forum:board", args=[self.pk])


class Thread(models.Model):
    """A thread, which is unread for whoever has not seen its last reply."""

    board = models.ForeignKey(Board, models.CASCADE, related_name="threads")
    title = models.CharField(max_length=120)
    last_reply_at = models.DateTimeField(default=timezone.now, db_index=True)

    objects: ClassVar[models.Manager["Thread"]] = models.Manager()

    class Meta:
        ordering = ("-last_reply_at", "-pk")

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("forum:thread", args=[self.pk])


class Reply(models.Model):
    """A reply: news for its thread, except to its author."""

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="replies")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="replies")
    text = models.TextField(max_length=2_000)
    written_at = models.DateTimeField(default=timezone.now)

    objects: ClassVar[models.Manager["Reply"]] = models.Manager()

    class Meta:
        verbose_name_plural = "replies"
        ordering = ("written_at", "pk")

    def __str__(self) -> str:
        return self.text[:40]
