"""Models of every kind that can be tracked or carry dots."""

import uuid
from collections.abc import Set

from django.conf import settings
from django.db import models

from readtrack.models import CountField, Tracked


class Category(models.Model):
    """Carries dots."""

    name = models.CharField(max_length=50)

    def __str__(self) -> str:
        return self.name


class Post(Tracked):
    """The ordinary case."""

    title = models.CharField(max_length=100)
    category = models.ForeignKey(Category, on_delete=models.CASCADE, null=True)

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return f"/posts/{self.pk}/"


class Review(Post):
    """A child with a table of its own: its counts are its parent's."""

    stars = models.IntegerField(default=5)


class Headline(Post):
    """A proxy."""

    class Meta:
        proxy = True


class Product(Tracked):
    """Known by a UUID, with a column of another name."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=100, db_column="label")


class Department(Category):
    """A child of what carries dots, as sites have whose queries give each row as what it is."""

    head = models.CharField(max_length=50)


class Page(Tracked):
    """Known by text that may hold anything; news for two categories of its own naming."""

    slug = models.CharField(max_length=100, primary_key=True)
    section = models.ForeignKey(Category, on_delete=models.CASCADE, null=True, related_name="+")
    shelf = models.ForeignKey("Shelf", on_delete=models.CASCADE, null=True, to_field="code")
    is_published = models.BooleanField(default=True)

    news_for = ("section", "shelf")

    def is_news(self, *, created: bool, changed: Set[str]) -> bool:
        return self.is_published


class Shelf(models.Model):
    """Pointed at by something else than its primary key."""

    code = models.CharField(max_length=10, unique=True)


class Topic(models.Model):
    """Articles are in several."""

    name = models.CharField(max_length=50)


class Article(Tracked):
    """News once it is published, for its category and its topics, to all but its author."""

    title = models.CharField(max_length=100, default="Title")
    text = models.TextField(blank=True)
    is_published = models.BooleanField(default=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True)
    category = models.ForeignKey(Category, on_delete=models.CASCADE, null=True)
    topics = models.ManyToManyField(Topic, related_name="articles")

    news_for = ("category", "topics")
    news_fields = ("is_published", "title", "category")
    news_author = "author"

    def is_news(self, *, created: bool, changed: Set[str]) -> bool:
        return self.is_published and (created or bool(changed))


class Manual(models.Model):
    """Has read state by setting only."""

    title = models.CharField(max_length=100)


class Instruction(Manual):
    """A child of it, with a key of the parent's."""


class Counted(Tracked):
    """Chooses for itself how its visitors are counted, and that views enter a funnel."""

    unique_strategy = "bitmap"
    has_funnel = True


class Publication(models.Model):
    """Counts nothing itself."""

    name = models.CharField(max_length=50)


class Journal(Publication, Tracked):  # type: ignore[misc]
    """A child that counts in its own table, known by its link to the parent."""


class Profile(Tracked):
    """Known by somebody else's key, with a count under another name."""

    user = models.OneToOneField("auth.User", on_delete=models.CASCADE, primary_key=True)
    view_count = CountField("views", db_column="Hits, all")
