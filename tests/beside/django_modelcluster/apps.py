"""An app with a label of its own: the package has the folder's name."""

from django.apps import AppConfig


class ClusteredConfig(AppConfig):
    name = "tests.beside.django_modelcluster"
    label = "clustered"
