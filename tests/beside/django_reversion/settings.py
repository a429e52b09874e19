"""Settings of a site with versions of rows."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "reversion", "tests.beside.django_reversion"]
