"""Posts with counts, and two kinds of places with dots."""

from django.db import models

from readtrack.models import Tracked


class Category(models.Model):
    """A category, whose readers are bits."""


class Thread(models.Model):
    """A thread, whose readers have positions."""


class Post(Tracked):
    """What is viewed. A new one is news for its category."""

    category = models.ForeignKey(Category, on_delete=models.CASCADE, null=True)


class Reply(models.Model):
    """What is news for a thread."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE)
