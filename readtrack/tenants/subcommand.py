"""`manage.py readtrack forget-tenant`."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from readtrack.doctor.wording import counted
from readtrack.management.subcommands import confirmation
from readtrack.management.subcommands.base import Subcommand, progress_bar
from readtrack.store import keys
from readtrack.tenants import forgetting


class ForgetTenant(Subcommand):
    """Removes what Redis holds of a tenant."""

    name = "forget-tenant"
    help = """\
Removes what Redis holds of a tenant whose schema was dropped, so that a new tenant of that name
starts with nothing. On a terminal it says how many keys there are, and asks.

  manage.py readtrack forget-tenant red
  manage.py readtrack forget-tenant red --dry-run     # only says how many keys there are
  manage.py readtrack forget-tenant red --no-input    # does not ask

Name the tenant as the function in READTRACK['PREFIX'] does. With django-tenants, a tenant whose row
and schema Django deletes is forgotten already. Of a tenant that lives, its dots are lost, and the
views since its last flush.

Looks at every key in Redis, which takes seconds per million keys, and twice as long when it asks.
"""
    # The tables of readtrack are in the schemas of tenants, and the command runs outside of them.
    needs_known_layout = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="its name, mostly that of its schema")
        confirmation.add_arguments(parser)

    def handle(
        self, *, tenant: str, dry_run: bool, interactive: bool, verbosity: int, **options: Any
    ) -> str:
        if keys.tenant_function() is None:
            raise CommandError(
                "READTRACK['PREFIX'] names no function, so there are no tenants to tell apart."
            )

        def consequences() -> str:
            with progress_bar("Looking", unit=" keys", verbosity=verbosity) as bar:
                count = sum(map(len, forgetting.keys_of_tenant(tenant, bar.update)))
            return f"This removes for good what Redis holds of {tenant}: {counted(count, 'key')}."

        if dry_run:
            return consequences()
        confirmation.confirm(consequences, interactive=interactive)
        with progress_bar("Removing", unit=" keys", verbosity=verbosity) as bar:
            count = forgetting.forget_tenant(tenant, bar.update)
        return f"Removed {counted(count, 'key')} of {tenant}."
