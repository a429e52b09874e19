"""Categories and their posts."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse
from django.utils import timezone

from readtrack.models import Tracked, TrackedQuerySet

TURNS = 12  # drawings of a cover


class Category(models.Model):
    """A section of the paper: what an unread dot hangs on."""

    name = models.CharField(max_length=40, unique=True)
    description = models.CharField(max_length=160)
    hue = models.PositiveSmallIntegerField(
        default=210, help_text="The section's colour, in degrees."
    )

    # Named only for the type checker, whose plugin knows the tests' settings.
    objects: ClassVar[models.Manager["Category"]] = models.Manager()

    class Meta:
        verbose_name_plural = "categories"
        ordering = ("pk",)

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("blog:category", args=[self.pk])


class Post(Tracked):
    """An article: what readers view."""

    category = models.ForeignKey(Category, models.CASCADE, related_name="posts")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="posts")
    title = models.CharField(max_length=120)
    body = models.TextField(help_text="An empty line starts a new paragraph.")
    published_at = models.DateTimeField(default=timezone.now, db_index=True)

    news_author = "author"
    publication_notes = 3
    objects = TrackedQuerySet.as_manager()

    class Meta:
        ordering = ("-published_at", "-pk")

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("blog:post", args=[self.pk])

    @property
    def answer_url(self) -> str:
        """The form for a post that answers this one."""
        return f"{reverse('blog:publish')}?category={self.category.pk}&answer={self.pk}"

    @property
    def turn(self) -> int:
        """The number of its cover's drawing."""
        return int(self.pk) % TURNS

    @property
    def byline(self) -> str:
        name: str = self.author.get_full_name()
        return name or self.author.get_username()

    @property
    def summary(self) -> str:
        return self.body.split("\n\n", 1)[0]
