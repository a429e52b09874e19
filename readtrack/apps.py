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
        from django.db.models.signals import post_delete, post_save

        from readtrack import subjects, tracker
        from readtrack.checks import check_setup
        from readtrack.conf import conf
        from readtrack.models import Tracked

        conf.load()
        checks.register(check_setup)
        for model in apps.get_models():
            if issubclass(model, Tracked):
                post_save.connect(tracker.publish_on_commit, sender=model, dispatch_uid="readtrack.publish")
                if model._meta.concrete_model is subjects.owner(model):  # a child may go and leave its parent
                    post_delete.connect(tracker.forget_deleted, sender=model, dispatch_uid="readtrack.forget")
