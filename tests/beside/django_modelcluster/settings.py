"""Settings of a site whose posts are saved together with their links."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "modelcluster", "tests.beside.django_modelcluster"]
