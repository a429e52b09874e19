"""Settings of a site with histories by triggers."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "pgtrigger", "pghistory", "tests.beside.django_pghistory"]
PGTRIGGER_INSTALL_ON_MIGRATE = True
