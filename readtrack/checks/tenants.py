"""A check of sites with tenants."""

from django.apps import apps
from django.conf import settings
from django.core import checks

from readtrack import shipped
from readtrack.conf import conf
from readtrack.store import keys


def check_part() -> list[checks.CheckMessage]:
    """Checks that a site with tenants has the part that they need."""
    has_tenants = hasattr(settings, "TENANT_MODEL") or keys.PATH.fullmatch(conf.PREFIX)
    if not has_tenants or apps.is_installed(shipped.TENANTS):
        return []
    return [
        checks.Warning(
            "The site has tenants, and a tenant that is deleted leaves its keys in Redis to the"
            " next one of its name.",
            hint=(
                f"Add '{shipped.TENANTS}' to INSTALLED_APPS, which removes them, and finds tenants"
                " that share their counts."
            ),
            id="readtrack.W066",
        )
    ]
