"""Settings of a new project, and those that README adds. The environment names the servers."""

import os

SECRET_KEY = "weight"
USE_TZ = True
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "weighed_site.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "weighed_site",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
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
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("WEIGHT_DATABASE", ":memory:"),
    }
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

if "WEIGHT_WITHOUT_READTRACK" not in os.environ:
    INSTALLED_APPS += ["readtrack"]
    MIDDLEWARE += ["readtrack.middleware.ReadTrackMiddleware"]
    CACHES["readtrack"] = {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": os.environ.get("WEIGHT_REDIS_URL", "redis://127.0.0.1:6379/0"),
    }
    READTRACK = {
        "CACHE": "readtrack",
        "TIMEOUT": 10.0,  # a busy machine may be slow
    }
