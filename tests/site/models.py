"""Models of every kind that can be tracked or carry dots."""

import uuid

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


class Page(Tracked):
    """Known by text that may hold anything; news for two categories of its own naming."""

    slug = models.CharField(max_length=100, primary_key=True)
    section = models.ForeignKey(Category, on_delete=models.CASCADE, null=True, related_name="+")
    shelf = models.ForeignKey("Shelf", on_delete=models.CASCADE, null=True, to_field="code")
    is_published = models.BooleanField(default=True)

    news_for = ("section", "shelf")

    def is_news(self, *, created: bool) -> bool:
        return self.is_published


class Shelf(models.Model):
    """Pointed at by something else than its primary key."""

    code = models.CharField(max_length=10, unique=True)


class Manual(models.Model):
    """Has read state by setting only."""

    title = models.CharField(max_length=100)


class Publication(models.Model):
    """Counts nothing itself."""

    name = models.CharField(max_length=50)


class Journal(Publication, Tracked):  # type: ignore[misc]
    """A child that counts in its own table, known by its link to the parent."""


class Profile(Tracked):
    """Known by somebody else's key, with a count under another name."""

    user = models.OneToOneField("auth.User", on_delete=models.CASCADE, primary_key=True)
    view_count = CountField("views", db_column="Hits, all")
