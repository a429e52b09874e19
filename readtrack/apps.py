"""The app: what it registers, it registers here."""

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate, pre_migrate
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _


class ReadTrackConfig(AppConfig):
    """`INSTALLED_APPS += ["readtrack"]`"""

    name = "readtrack"
    verbose_name = _("View counts")
    default_auto_field = "django.db.models.BigAutoField"

    def import_models(self) -> None:
        # Before any app is ready, because the admin, which may come first, then makes the site's
        # TrackedAdmins.
        from readtrack.conf import conf

        conf.load()
        super().import_models()

    def ready(self) -> None:
        from readtrack import operations, receivers, request
        from readtrack.checks.setup import check_setup
        from readtrack.flush import resets

        # Until the middleware sets a recorder.
        HttpRequest.readtrack = request.MissingRecorder()  # type: ignore[attr-defined]
        checks.register(check_setup)
        receivers.connect()
        pre_migrate.connect(operations.follow_renames, sender=self)
        post_migrate.connect(resets.on_flush, sender=self)
