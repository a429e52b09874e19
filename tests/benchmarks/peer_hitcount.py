"""Runs in the peer's environment: counts a hundred views for each line of input, and prints how
many it counted.
"""

import os
import sys
from importlib import import_module
from itertools import count
from urllib.parse import urlsplit

import django
from django.conf import settings

url = urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    SECRET_KEY="peer",
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.contenttypes",
        "django.contrib.auth",
        "django.contrib.sessions",
        "hitcount",
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "hitcount",
            "USER": url.username,
            "PASSWORD": url.password,
            "HOST": url.hostname,
            "PORT": url.port,
        }
    },
)


def create_database() -> None:
    """A database of its own beside ours."""
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS hitcount WITH (FORCE)")
        connection.execute("CREATE DATABASE hitcount")


def main() -> None:
    create_database()
    django.setup()
    from django.contrib.auth.models import AnonymousUser, User
    from django.core.management import call_command
    from django.test import RequestFactory
    from hitcount.models import HitCount
    from hitcount.views import HitCountMixin

    call_command("migrate", verbosity=0)
    users = [
        User.objects.create(username=f"page{number}") for number in range(10)
    ]  # anything can be hit
    sessions = import_module(settings.SESSION_ENGINE)
    factory = RequestFactory()
    addresses = count()
    for _ in sys.stdin:
        counted = 0
        for number in range(100):
            visitor = next(addresses)
            request = factory.get(
                "/", REMOTE_ADDR=f"10.{visitor >> 16 & 255}.{visitor >> 8 & 255}.{visitor & 255}"
            )
            request.session = sessions.SessionStore()
            request.user = AnonymousUser()
            page = HitCount.objects.get_for_object(users[number % 10])
            counted += HitCountMixin.hit_count(request, page).hit_counted
        print(counted, flush=True)


main()
