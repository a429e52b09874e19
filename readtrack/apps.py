"""The app: what it registers, it registers here."""

from django.apps import AppConfig, apps
from django.core import checks
from django.utils.translation import gettext_lazy as _


class ReadTrackConfig(AppConfig):
    """`INSTALLED_APPS += ["readtrack"]`"""

    name = "readtrack"
    verbose_name = _("View counts")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.db.models.signals import post_delete

        from readtrack import categories, news, subjects, tracker
        from readtrack.checks import check_setup
        from readtrack.conf import conf
        from readtrack.models import Tracked

        conf.load()
        checks.register(check_setup)
        news.connect()
        for model in apps.get_models():
            # A child may go and leave its parent, which has the counts.
            if model._meta.concrete_model is not subjects.owner(model):
                continue
            if issubclass(model, Tracked):
                post_delete.connect(tracker.forget_deleted, sender=model, dispatch_uid="readtrack.forget")
            if categories.has_read_state(model):
                post_delete.connect(tracker.forget_read_state, sender=model, dispatch_uid="readtrack.forget_read_state")
