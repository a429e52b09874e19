"""The app's configuration, which prepares the site's page models and connects Wagtail's signals."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ReadTrackWagtailConfig(AppConfig):
    """`INSTALLED_APPS += ["readtrack", "readtrack.contrib.wagtail"]`"""

    name = "readtrack.contrib.wagtail"
    label = "readtrack_wagtail"
    verbose_name = _("View counts")

    def ready(self) -> None:
        from readtrack.contrib.wagtail import models_of_site, news

        models_of_site.prepare()
        news.connect()
