"""The app's configuration: what tenants add to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models.signals import post_delete

from readtrack.parts import Check, PartConfig

if TYPE_CHECKING:
    from readtrack.management.subcommands.base import Subcommand


class TenantsConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.tenants"]`"""

    name = "readtrack.tenants"
    label = "readtrack_tenants"
    verbose_name = "Tenants"

    def ready(self) -> None:
        # The setting of django-tenants and of packages like it.
        tenants = getattr(settings, "TENANT_MODEL", None)
        if tenants:
            from readtrack.tenants.forgetting import on_tenant_gone

            post_delete.connect(
                on_tenant_gone, sender=tenants, dispatch_uid="readtrack.on_tenant_gone"
            )

    def checks(self) -> Sequence[Check]:
        from readtrack.tenants import checks

        return (checks.check_tenants,)

    def subcommands(self) -> "Sequence[Subcommand]":
        from readtrack.tenants.subcommand import ForgetTenant

        return (ForgetTenant(),)
