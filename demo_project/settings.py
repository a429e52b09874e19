"""Settings of the demo site. The servers come from the environment, everything else is fixed.

DATABASE_URL is `postgresql://…`, `sqlite:///relative/to/the/checkout` or `sqlite:////absolute`.
"""

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import readtrack
from readtrack.schedule import readtrack_schedule

BASE_DIR = Path(__file__).resolve().parent.parent


def database(url: str) -> dict[str, object]:
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        # Writers queue from their first statement, instead of failing when they turn from reading
        # to writing.
        options: dict[str, object] = {"transaction_mode": "IMMEDIATE", "timeout": 20}
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": BASE_DIR / parts.path[1:],
            "OPTIONS": options,
        }
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path[1:]),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": parts.port or "",
        "OPTIONS": dict(parse_qsl(parts.query)),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


SECRET_KEY = "demo-only: everyone can read this key, so never serve a real site with it"
# A page of DEBUG shows an error's variables to everybody who can reach the port, and some of them
# hold the servers' passwords.
DEBUG = os.environ.get("DEBUG") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
DATABASES = {"default": database(os.environ.get("DATABASE_URL", "sqlite:///db.sqlite3"))}
CACHES = {
    "default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": REDIS_URL},
    "pages": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},  # of the evening edition
}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    *readtrack.EVERYTHING,
    "demo_project.blog",
    "demo_project.forum",
]
MIDDLEWARE = [
    "demo_project.blog.hits.noting_hits",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",  # the admin speaks the browser's language
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
                "demo_project.blog.context_processors.newsroom",
            ],
        },
    },
]

REDIS_PREFIX = os.environ.get("REDIS_PREFIX", "")
# The whole site is on one machine here, and all of it starts at once: Redis may take a while to
# answer.
# More often than usual, so that whoever watches the demo sees the counts arrive in SQL.
FLUSH_EVERY = int(os.environ.get("FLUSH_EVERY", "15"))  # seconds
# Where links in mails lead. The demo sends none: it prints them, and shows the last one in the admin.
SITE_URL = os.environ.get("SITE_URL", "http://127.0.0.1:8000")
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
READTRACK: dict[str, object] = {
    "PREFIX": REDIS_PREFIX,
    "TIMEOUT": 1.0,
    "DEBUG_HEADER": True,  # for the line at the foot of each page
    "FLUSH_INTERVAL": FLUSH_EVERY,
    "NUMBERS": {
        "country_header": "CF-IPCountry",  # the simulated visitors send it, as a proxy would
        "funnels": True,
        "dimensions": ["channel", "referrer", "campaign", "device", "country"],
    },
    "MODELS": {
        "forum.Thread": {"read_state": "positions", "boards": ["board"]},
        "forum.Reply": {"news_for": ["thread"], "news_author": "author"},
    },
    "DIGEST": {
        "site": SITE_URL,
        "name": "The Daily Reader",
        "authors": True,
        "from": "The Daily Reader <numbers@example.com>",
    },
    "ALERTS": {"site": SITE_URL, "mail": []},  # they are in the admin
}

CELERY_BROKER_URL = os.environ.get(
    "CELERY_BROKER_URL", urlsplit(REDIS_URL)._replace(path="/1").geturl()
)
CELERY_BROKER_TRANSPORT_OPTIONS = {"global_keyprefix": REDIS_PREFIX}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
SCHEDULE = readtrack_schedule(READTRACK)
CELERY_BEAT_SCHEDULE = {
    **SCHEDULE,
    "readtrack-flush-views": {
        **SCHEDULE["readtrack-flush-views"],
        "schedule": 4 * FLUSH_EVERY,
    },
}

ROOT_URLCONF = "demo_project.urls"
WSGI_APPLICATION = "demo_project.wsgi.application"
ASGI_APPLICATION = "demo_project.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Everybody knows the passwords. Django's own hasher would take a third of a second for each.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "blog:front"
LOGOUT_REDIRECT_URL = "blog:front"

STATIC_URL = "static/"
LANGUAGE_CODE = "en"
TIME_ZONE = os.environ.get("TIME_ZONE", "UTC")
USE_TZ = True
CELERY_TIMEZONE = TIME_ZONE

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"readtrack": {"level": "INFO"}},
}
