"""The app's configuration: what live dots add to readtrack."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.urls import path
from django.utils.translation import gettext_lazy as _

from readtrack.parts import Check, PartConfig

if TYPE_CHECKING:
    from django.template import Library
    from django.urls import URLPattern

    from readtrack.script.additions import Addition


class LiveConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.live"]`"""

    name = "readtrack.live"
    label = "readtrack_live"
    verbose_name = _("Live dots")
    needs = ("readtrack.script",)
    setting = "LIVE"
    setting_about = (
        '"events": path of `readtrack.live.asgi`, such as "/events/", so that pages with live dots'
        " hear of publications at once; {}: they only poll"
    )

    def checks(self) -> Sequence[Check]:
        from readtrack.live import checks

        return (checks.check_setting,)

    def urls(self) -> "Sequence[URLPattern]":
        from readtrack.live import views

        return (path("news/", views.news, name="news"),)

    def add_tags(self, library: "Library") -> None:
        from readtrack.live import tags

        library.simple_tag(tags.live, takes_context=True, name="readtrack_live")

    def jinja_functions(self) -> Mapping[str, Any]:
        from jinja2 import pass_context

        from readtrack.live import tags

        return {"readtrack_live": pass_context(tags.live)}

    def script_addition(self) -> "Addition":
        from readtrack.live.script import LiveDotsAddition

        return LiveDotsAddition()

    def hears_publications(self) -> bool:
        from readtrack.live import options

        return bool(options.events())
