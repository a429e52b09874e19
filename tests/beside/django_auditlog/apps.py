"""An app with a label of its own."""

from django.apps import AppConfig


class BesideConfig(AppConfig):
    name = "tests.beside.django_auditlog"
    label = "beside_auditlog"
