from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "tests.contrib.wagtail.site"
    label = "wagtail_site"
    default_auto_field = "django.db.models.AutoField"
