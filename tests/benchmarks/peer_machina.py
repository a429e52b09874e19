"""Runs in the peer's environment: forums that all users have read. Each line of input names what is
done next.
"""

import os
import sys
from collections.abc import Callable
from itertools import count
from urllib.parse import urlsplit

import django
from django.conf import settings

USERS = 10_000
FORUMS = 20
EACH = 100  # users that open a forum, or draw its dots

url = urlsplit(os.environ["DATABASE_URL"])
APPS = """
    forum forum_conversation forum_conversation.forum_attachments forum_conversation.forum_polls forum_feeds
    forum_moderation forum_search forum_tracking forum_member forum_permission
"""
settings.configure(
    SECRET_KEY="peer",
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    CACHES={
        name: {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
        for name in ("default", "machina_attachments")
    },
    HAYSTACK_CONNECTIONS={"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
    INSTALLED_APPS=[
        "django.contrib.contenttypes",
        "django.contrib.auth",
        "django.contrib.sessions",
        "django.contrib.messages",
        "mptt",
        "haystack",
        "widget_tweaks",
        "machina",
        *(f"machina.apps.{name}" for name in APPS.split()),
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "machina",
            "USER": url.username,
            "PASSWORD": url.password,
            "HOST": url.hostname,
            "PORT": url.port,
        }
    },
)

FILL = """
INSERT INTO auth_user
    (id, username, password, first_name, last_name, email, is_superuser, is_staff, is_active, date_joined)
    SELECT n, 'user' || n, '', '', '', '', false, false, true, now() FROM generate_series(1, {users}) n;
INSERT INTO forum_tracking_forumreadtrack (user_id, forum_id, mark_time)
    SELECT u.id, f.id, now() FROM auth_user u, forum_forum f;
ANALYZE;
"""


def create_database() -> None:
    """A database of its own beside ours."""
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS machina WITH (FORCE)")
        connection.execute("CREATE DATABASE machina")


def main() -> None:
    create_database()
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    works = forums()
    with connection.cursor() as cursor:
        cursor.execute(FILL.format(users=USERS))
    for line in sys.stdin:
        print(works[line.strip()](), flush=True)


def forums() -> dict[str, Callable[[], int]]:
    """What can be asked for; each gives how often it was done."""
    from django.contrib.auth.models import User
    from machina.apps.forum.models import Forum
    from machina.apps.forum_conversation.models import Post, Topic
    from machina.apps.forum_tracking.handler import TrackingHandler

    handler = TrackingHandler()
    every = [
        Forum.objects.create(name=f"Forum {number}", type=Forum.FORUM_POST)
        for number in range(FORUMS)
    ]
    topics = [
        Topic.objects.create(forum=forum, subject="Topic", type=0, status=0) for forum in every
    ]
    numbers = count()

    def publish() -> int:
        Post.objects.create(
            topic=topics[next(numbers) % FORUMS],
            subject="Post",
            content="Text",
            username="Somebody",
        )
        return 1

    for _ in topics:
        publish()

    def open_forum() -> int:
        for pk in range(1, EACH + 1):
            handler.mark_forums_read([every[0]], User(pk=pk))
        return EACH

    def draw() -> int:
        for pk in range(1, EACH + 1):
            handler.get_unread_forums_from_list(User(pk=pk), Forum.objects.all())
        return EACH

    def read_all() -> int:
        for pk in range(1, EACH + 1):
            handler.mark_forums_read(Forum.objects.all(), User(pk=pk))
        return EACH

    return {"open": open_forum, "draw": draw, "read all": read_all, "publish": publish}


main()
