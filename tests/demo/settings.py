"""The demo's settings for tests beside other tests: on a busy machine Redis may take long to answer."""

from demo_project.settings import *  # noqa: F403 - settings are names of a module
from demo_project.settings import MIDDLEWARE, READTRACK

READTRACK["TIMEOUT"] = 10.0
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a sign-in takes no half second
MIDDLEWARE.insert(
    MIDDLEWARE.index("django.middleware.common.CommonMiddleware"), "django.middleware.locale.LocaleMiddleware"
)
