"""The app's configuration, which registers the checks and the receivers of signals."""

from typing import Any

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
        from readtrack import receivers, request

        # For requests that do not come through the middleware, which sets a recorder.
        HttpRequest.readtrack = request.MissingRecorder()  # type: ignore[attr-defined]
        checks.register(check_setup)
        checks.register(check_databases, checks.Tags.database)
        receivers.connect()
        pre_migrate.connect(follow_renames, sender=self)
        post_migrate.connect(reset_flushed, sender=self)


# What only commands need is imported when one of them asks, because each web worker runs `ready`.


def check_setup(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Returns the messages of the checks that touch no network."""
    from readtrack.checks import setup

    return setup.check_setup(app_configs, **kwargs)


def check_databases(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """Returns the messages of the checks that ask a database."""
    from readtrack.checks import setup

    return [message for check in setup.DATABASE_CHECKS for message in check(app_configs, **kwargs)]


def follow_renames(sender: Any, **kwargs: Any) -> None:
    """Receives pre_migrate, and lets what is kept about a model follow its new name."""
    from readtrack import operations

    operations.follow_renames(sender, **kwargs)


def reset_flushed(sender: Any, **kwargs: Any) -> None:
    """Receives post_migrate, and resets the models that `manage.py flush` has emptied."""
    from readtrack.flush import resets

    resets.on_flush(sender, **kwargs)
