"""The app's configuration: what the API adds to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.urls import path
from django.utils.translation import gettext_lazy as _

from readtrack.parts import PartConfig

if TYPE_CHECKING:
    from django.urls import URLPattern

    from readtrack.management.subcommands.base import Subcommand


class ApiConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.api"]`"""

    name = "readtrack.api"
    label = "readtrack_api"
    verbose_name = _("JSON API")
    needs = ("readtrack.numbers",)

    def subcommands(self) -> "Sequence[Subcommand]":
        from readtrack.api.subcommand import Mcp

        return (Mcp(),)

    def urls(self) -> "Sequence[URLPattern]":
        from readtrack.api import views

        return (
            path("api/", views.index, name="api"),
            path("api/openapi.json", views.description, name="api_openapi"),
            path("api/<str:name>", views.answer, name="api_question"),
        )

    def forget_user(self, pk: Any) -> None:
        from readtrack.api.models import ApiToken
        from readtrack.sql import databases

        databases.rows(ApiToken).filter(user_id=pk).delete()
