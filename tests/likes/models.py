"""The tables of the part."""

from django.db import models

from readtrack.models import SubjectRow


class LikesOfHour(SubjectRow):
    """The likes of a subject in an hour; also those that were undone, as `undone:blog.post:42`."""

    prefixes = ("undone",)

    pk = models.CompositePrimaryKey("subject", "hour")
    hour = models.PositiveIntegerField()
    likes = models.PositiveIntegerField()
    note = models.TextField(default="")


class LikesSeen(SubjectRow):
    """Whether somebody has looked at the likes."""

    kept_with = "read state"

    pk = models.CompositePrimaryKey("subject", "seen_by")
    seen_by = models.PositiveIntegerField()
    times = models.PositiveIntegerField(default=1)
