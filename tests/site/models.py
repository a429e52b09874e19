"""Models of every kind that can be tracked or carry dots."""

import uuid
from collections.abc import Set

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils import timezone

from readtrack.models import CountField, Tracked, TrackedQuerySet


class Member(User):
    """An account, by a proxy."""

    class Meta:
        proxy = True


class Category(models.Model):
    """A category with dots."""

    name = models.CharField(max_length=50)

    def __str__(self) -> str:
        return self.name


class Post(Tracked):
    """An ordinary tracked model."""

    title = models.CharField(max_length=100)
    category = models.ForeignKey(Category, on_delete=models.CASCADE, null=True)

    objects = TrackedQuerySet.as_manager()

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return f"/posts/{self.pk}/"


class Review(Post):
    """A child with a table of its own. Its counts are in the parent's table."""

    stars = models.IntegerField(default=5)


class Headline(Post):
    """A proxy."""

    class Meta:
        proxy = True


class Product(Tracked):
    """A model with a UUID as its key, and a field whose column has another name."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=100, db_column="label")


class Department(Category):
    """A child of a model with dots, as in sites whose queries return each row as its own class."""

    head = models.CharField(max_length=50)


class Page(Tracked):
    """A model with text as its key. It is news for two categories, by fields that it names."""

    slug = models.CharField(max_length=100, primary_key=True)
    section = models.ForeignKey(Category, on_delete=models.CASCADE, null=True, related_name="+")
    shelf = models.ForeignKey("Shelf", on_delete=models.CASCADE, null=True, to_field="code")
    is_published = models.BooleanField(default=True)

    news_for = ("section", "shelf")

    def is_news(self, *, created: bool, changed: Set[str]) -> bool:
        return self.is_published


class Shelf(models.Model):
    """A category that a foreign key refers to by a field other than the primary key."""

    code = models.CharField(max_length=10, unique=True)


class Topic(models.Model):
    """A category of a many-to-many field."""

    name = models.CharField(max_length=50)


class Article(Tracked):
    """News from its publication on, for its category and its topics, except to its author."""

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
    """A model with read state by a setting only."""

    title = models.CharField(max_length=100)


class Instruction(Manual):
    """A child of Manual, with the parent's key."""


class Counted(Tracked):
    """A model with a strategy of its own for unique visitors, and with funnels."""

    unique_strategy = "bitmap"
    has_funnel = True


class Publication(models.Model):
    """A parent that is not tracked."""

    name = models.CharField(max_length=50)


class Journal(Publication, Tracked):
    """A tracked child with counts in its own table. Its key is the link to the parent."""


class Essay(Tracked, Publication):
    """A tracked child whose bases are in the other order."""


class Visible(models.Manager):
    """Leaves out rows that are hidden."""

    def get_queryset(self) -> models.QuerySet:
        return super().get_queryset().filter(is_hidden=False)


class Hideable(models.Model):
    """An abstract model with a manager of its own, as packages for soft deletion have it."""

    is_hidden = models.BooleanField(default=False)

    objects = Visible()

    class Meta:
        abstract = True


class Note(Tracked, Hideable):
    """A tracked model that has its manager from its other base."""


class Gadget(models.Model):
    """A model of another package, which the site cannot change: it is not tracked, and has a UUID
    as its key.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=100)
    category = models.ForeignKey(Category, on_delete=models.CASCADE, null=True)
    shelves = models.ManyToManyField(Shelf)


class Gizmo(Gadget):
    """A child of it, with the parent's key."""


class Profile(Tracked):
    """A model with another row's key as its own, and another column for the count."""

    user = models.OneToOneField("auth.User", on_delete=models.CASCADE, primary_key=True)
    view_count = CountField("views", db_column="Hits, all")


class Forum(models.Model):
    """A part of a forum, with boards."""

    name = models.CharField(max_length=50)


class Board(models.Model):
    """A board of a forum, with threads."""

    forum = models.ForeignKey(Forum, on_delete=models.CASCADE, null=True)
    name = models.CharField(max_length=50)


class Thread(models.Model):
    """A thread, whose readers have positions by a setting."""

    board = models.ForeignKey(Board, on_delete=models.CASCADE, null=True)
    is_hidden = models.BooleanField(default=False)
    created = models.DateTimeField(null=True)
    last_post_on = models.DateTimeField(null=True)


class Reply(models.Model):
    """A post of a thread, which is news for the thread by a setting."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="replies")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True)
    written = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("written", "pk")


class TopicReadTrack(models.Model):
    """Up to when a user has read a topic: a table of the shape of django-machina's and pybbm's."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    topic = models.ForeignKey(Thread, on_delete=models.CASCADE, null=True)
    mark_time = models.DateTimeField()

    class Meta:
        unique_together = ("user", "topic")


class ForumReadTrack(models.Model):
    """Up to when a user has read all topics of a forum, in the same two apps."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    forum = models.ForeignKey(Board, on_delete=models.CASCADE)
    mark_time = models.DateTimeField()

    class Meta:
        unique_together = ("user", "forum")


class ReadThread(models.Model):
    """Up to when a user has read a thread: a table of the shape of Misago's."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    category = models.ForeignKey(Board, on_delete=models.CASCADE)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE)
    read_time = models.DateTimeField()


class ReadCategory(models.Model):
    """Up to when a user has read all threads of a category, in Misago."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    category = models.ForeignKey(Board, on_delete=models.CASCADE)
    read_time = models.DateTimeField()


class ReadMark(models.Model):
    """Up to when a reader has read any object, or everything of its type without an object: a table
    of the shape of that of unread.
    """

    reader = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    content_type = models.ForeignKey(ContentType, on_delete=models.CASCADE)
    object_id = models.CharField(max_length=50, null=True)  # noqa: DJ001 - None is no object
    readable = GenericForeignKey("content_type", "object_id")
    timestamp = models.DateTimeField(null=True)
