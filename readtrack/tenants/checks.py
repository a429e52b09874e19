"""Checks of sites with a database schema for each tenant."""

from django.conf import settings
from django.core import checks

from readtrack import subjects
from readtrack.conf import conf
from readtrack.store import keys


def check_tenants() -> list[checks.CheckMessage]:
    """Checks that each tenant has tables and keys of its own, because rows have the same ids."""
    # The settings of django-tenants and of django-tenant-schemas.
    if not hasattr(settings, "TENANT_MODEL"):
        return []
    tenant_apps = {str(app).partition(".apps.")[0] for app in getattr(settings, "TENANT_APPS", ())}
    models = [*subjects.tracked_models(), *subjects.read_state_models()]
    if not any(model._meta.app_config.name in tenant_apps for model in models):
        return []
    if "readtrack" not in tenant_apps:
        reason = "readtrack is not in TENANT_APPS"
    elif not keys.PATH.fullmatch(conf.PREFIX):
        reason = "READTRACK['PREFIX'] names no function"
    else:
        return []
    return [
        checks.Error(
            f"Tenants share their counts, because {reason}.",
            hint=(
                "Set READTRACK['PREFIX'] to the path of a function that returns"
                " django.db.connection.schema_name, and put 'readtrack' into TENANT_APPS."
                " Flush each, every minute with --changed and once an hour without it:"
                " manage.py all_tenants_command --no-public readtrack flush --changed"
            ),
            id="readtrack.E024",
        )
    ]
