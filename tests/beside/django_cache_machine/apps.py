"""An app with a label of its own."""

from django.apps import AppConfig


class BesideConfig(AppConfig):
    name = "tests.beside.django_cache_machine"
    label = "beside_cache_machine"
