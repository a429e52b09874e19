"""The app's configuration: what a front end asks of readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.urls import path

from readtrack.parts import Check, PartConfig

if TYPE_CHECKING:
    from django.urls import URLPattern


class FrontEndConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.front_end"]`"""

    name = "readtrack.front_end"
    label = "readtrack_front_end"
    verbose_name = "Front end"
    setting = "FRONT_END"
    setting_about = "what a front end may ask for"

    def setting_keys(self) -> type[Any]:
        from readtrack.front_end.options import FrontEndOptions

        return FrontEndOptions

    def checks(self) -> Sequence[Check]:
        from readtrack.front_end import checks

        return (checks.check_queryset,)

    def urls(self) -> "Sequence[URLPattern]":
        from readtrack.front_end import views

        return (
            path("unread/", views.unread, name="unread"),
            path("read/", views.read, name="read"),
        )
