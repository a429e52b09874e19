"""Settings of a site with a schema for each tenant."""

from tests import settings as base
from tests.settings import *  # noqa: F403

DATABASES = {
    "default": {**base.DATABASES["default"], "ENGINE": "django_tenants.postgresql_backend"}
}
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
SHARED_APPS = [
    "django_tenants",
    "tests.beside.django_tenants.customers",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.admin",
    "django.contrib.staticfiles",
]
TENANT_APPS = ["readtrack", "readtrack.tenants", "tests.site"]
INSTALLED_APPS = [*SHARED_APPS, *TENANT_APPS]
TENANT_MODEL = "customers.Customer"
TENANT_DOMAIN_MODEL = "customers.Domain"
READTRACK = {**base.READTRACK, "PREFIX": "tests.beside.django_tenants.tenants.schema"}
