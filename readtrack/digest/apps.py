"""The app's configuration: what the digest adds to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.urls import path
from django.utils.translation import gettext_lazy as _

from readtrack.parts import AdminLink, Check, Job, PartConfig

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.urls import URLPattern

    from readtrack.management.subcommands.base import Subcommand

INTERVAL = 3600.0  # seconds between two looks for digests that are due


class DigestConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.digest"]`"""

    name = "readtrack.digest"
    label = "readtrack_digest"
    verbose_name = _("Numbers by mail")
    needs = ("readtrack.numbers",)
    setting = "DIGEST"
    setting_about = (
        'the numbers by mail: "site" (such as "https://example.com", for links; or path of a'
        ' function () -> that of the present tenant), "name" (of the site, as mails say it; by'
        ' default its host), "every" ("week" or "day"), "authors" (True: theirs to each), "from",'
        ' "users" (path of a function () -> who may get the site\'s numbers), "locale" (path of a'
        " function (user) -> language and time zone); {}: no mail"
    )

    def checks(self) -> Sequence[Check]:
        from readtrack.digest import checks

        return (
            checks.check_setting,
            checks.check_history,
            checks.check_address,
            checks.check_sender,
            checks.check_authors,
        )

    def subcommands(self) -> "Sequence[Subcommand]":
        from readtrack.digest.subcommand import Digest

        return (Digest(),)

    def jobs(self) -> Sequence[Job]:
        from readtrack.conf import conf

        if not conf.of_part("DIGEST"):
            return ()
        return (Job("digest", INTERVAL, send_due),)

    def urls(self) -> "Sequence[URLPattern]":
        from readtrack.digest import views

        return (path("digest/<str:signed>/", views.stop, name="digest"),)

    def admin_urls(self, admin_site: "AdminSite") -> "Sequence[URLPattern]":
        from readtrack.digest import views

        return (path("digest/", admin_site.admin_view(views.preview), name="readtrack_digest"),)

    def admin_links(self) -> Sequence[AdminLink]:
        from readtrack.conf import conf

        if not conf.of_part("DIGEST"):
            return ()
        return (AdminLink(_("The last mail"), "readtrack_digest"),)

    def forget_user(self, pk: Any) -> None:
        from readtrack.digest import records

        records.forget(str(pk))

    def erase_user(self, pk: Any, *, is_dry_run: bool) -> int:
        from readtrack.digest import records

        return records.erase(str(pk), is_dry_run=is_dry_run)


def send_due() -> None:
    """Sends the digests that are due."""
    from readtrack.digest import sending

    sending.send_due()
