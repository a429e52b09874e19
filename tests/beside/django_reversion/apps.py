"""An app with a label of its own."""

from django.apps import AppConfig


class BesideConfig(AppConfig):
    name = "tests.beside.django_reversion"
    label = "beside_reversion"
