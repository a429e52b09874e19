"""Settings of the site. The driver puts the URLs of the servers into the environment."""

import os
from urllib.parse import urlsplit

import readtrack

database = urlsplit(os.environ["DATABASE_URL"])
redis_url = os.environ["ROLLING_REDIS_URL"]

SECRET_KEY = "rolling"
USE_TZ = True
TIME_ZONE = "UTC"
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    *readtrack.EVERYTHING,
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "readtrack.middleware.ReadTrackMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database.path.lstrip("/"),
        "USER": database.username,
        "PASSWORD": database.password or "",
        "HOST": database.hostname,
        "PORT": database.port,
    }
}
CACHES = {
    # Both versions share the fragments of pages, with the placeholders in them.
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": redis_url,
        "KEY_PREFIX": "fragments",
    },
    "readtrack": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": redis_url},
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"readtrack": {"handlers": ["console"], "level": "WARNING"}},
}
READTRACK = {
    "CACHE": "readtrack",
    "DEBUG_HEADER": True,
    "RATE": (0, 10),
    "TIMEOUT": 10.0,  # a busy machine may be slow
    "NUMBERS": {"dimensions": ["device"], "funnels": True},
    "MODELS": {
        "shop.Category": {"read_state": True},
        "shop.Post": {"news_for": ["category"]},
        "shop.Thread": {"read_state": "positions"},
        "shop.Reply": {"news_for": ["thread"]},
    },
}
