"""Settings of a site with a cache of querysets."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "caching", "tests.beside.django_cache_machine"]
