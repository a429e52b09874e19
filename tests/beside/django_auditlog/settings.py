"""Settings of a site with an audit log."""

from tests import settings as base
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*base.INSTALLED_APPS, "auditlog", "tests.beside.django_auditlog"]
