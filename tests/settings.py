"""Settings of the tests. `tests.support.servers` puts the URLs of the servers into the environment."""

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

import django

import readtrack
from readtrack.conf import Conf
from readtrack.numbers.options import NumbersOptions
from tests.support import caches

# Without parts, `tests.support.core_alone` leaves out the tests that need one.
APPS = ["readtrack"] if os.environ.get("READTRACK_TEST_CORE") else readtrack.EVERYTHING
ENGINES = {"postgres": "postgresql", "postgresql": "postgresql", "mysql": "mysql"}


def _database(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    engine = ENGINES.get(parts.scheme, "sqlite3")
    if engine == "sqlite3":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    if engine == "mysql" and not find_spec("MySQLdb"):
        import_module("pymysql").install_as_MySQLdb()
    return {
        "ENGINE": f"django.db.backends.{engine}",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username,
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname,
        "PORT": parts.port,
    }


SECRET_KEY = "tests"
USE_TZ = True
TIME_ZONE = "UTC"
ROOT_URLCONF = "tests.site.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    *APPS,
    "tests.site",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "readtrack.middleware.ReadTrackMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    },
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "OPTIONS": {"extensions": ["readtrack.contrib.jinja.ReadTrackExtension"]},
    },
]
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CACHES: dict[str, dict[str, Any]] = {
    "default": caches.single(os.environ.get("READTRACK_TEST_REDIS_URL", "redis://127.0.0.1:6379/0"))
}
if cluster := os.environ.get("READTRACK_TEST_CLUSTER"):
    CACHES["default"] = caches.cluster(cluster.split())
# The second database is for what has to work on both kinds.
DATABASES = {
    "default": _database(os.environ.get("DATABASE_URL", "sqlite://")),
    "lite": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}
# A busy machine may be slow; what time-outs do has tests of its own.
# Of Django 6.0 and newer. Nothing runs the tasks of the second one.
TASKS = {
    "default": {"BACKEND": "django.tasks.backends.immediate.ImmediateBackend"},
    "waiting": {"BACKEND": "django.tasks.backends.dummy.DummyBackend"},
}
READTRACK: dict[str, object] = {"TIMEOUT": 10.0}
# For these processes and all that they start; tests/support/partitions.py says what it is for.
# Tests name the dimensions that they are about.
NumbersOptions.__new__.__defaults__ = NumbersOptions()._replace(dimensions=())
if partitions := int(os.environ.get("READTRACK_TEST_PARTITIONS", "0")):
    Conf.CLUSTER = {"partitions": partitions}  # type: ignore[attr-defined]
