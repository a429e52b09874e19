"""The app's configuration, which registers the checks and the receivers of signals."""

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
        # The settings are loaded before any app is ready: the admin may be ready before this app,
        # and then makes the site's TrackedAdmins, which need them.
        from readtrack.conf import conf

        conf.load()
        super().import_models()

    def ready(self) -> None:
        from readtrack import operations, receivers, request
        from readtrack.checks.setup import DATABASE_CHECKS, check_setup
        from readtrack.flush import resets

        # For requests that do not come through the middleware, which sets a recorder.
        HttpRequest.readtrack = request.MissingRecorder()  # type: ignore[attr-defined]
        checks.register(check_setup)
        for check in DATABASE_CHECKS:
            checks.register(check, checks.Tags.database)
        receivers.connect()
        pre_migrate.connect(operations.follow_renames, sender=self)
        post_migrate.connect(resets.on_flush, sender=self)
