"""The app's configuration: what the page's script adds to readtrack."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.urls import path
from django.utils.translation import gettext_lazy as _

from readtrack.parts import Check, CountingNeeds, PartConfig

if TYPE_CHECKING:
    from django.template import Library
    from django.urls import URLPattern

    from readtrack.page.reporting import Reporting
    from readtrack.store.keys import Key


class ScriptConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.script"]`"""

    name = "readtrack.script"
    label = "readtrack_script"
    verbose_name = _("Script of pages")
    uses = ("readtrack.networks",)
    setting = "SCRIPT"
    setting_about = (
        '"name": that of the script and of the address that it calls, below that of'
        ' `readtrack.urls` ("page.js"); "count_by": who counts a page with the script, "either"'
        ' (the first, the default), "server" or "script"; "reads": a dot goes out when the page is'
        ' "shown" (the default), or its marked text really "read"; "shared_paths": regular'
        " expressions of paths, as the URLconf sees them, whose pages are the same for everybody"
    )
    scripts = ("reading", "mark_robots")

    def checks(self) -> Sequence[Check]:
        from readtrack.script import checks

        return (checks.check_setting, checks.check_address, checks.check_csp)

    def keys(self) -> "Sequence[Key]":
        from readtrack.script import keys

        return keys.ROWS

    def urls(self) -> "Sequence[URLPattern]":
        from readtrack.script import options, outbound, robots, views

        return (
            # The path must not tell robots that it is a honeypot.
            path("archive/", robots.honeypot),
            path("archive/<str:name>/", robots.honeypot, name="honeypot"),
            path("out/<str:signed>", outbound.follow, name="outbound"),
            path(options.name(), views.page, name="page"),
        )

    def add_tags(self, library: "Library") -> None:
        from readtrack.script import tags

        tags.add(library)

    def jinja_functions(self) -> Mapping[str, Any]:
        from readtrack.script import tags

        return tags.jinja_functions()

    def counting_needs(self) -> CountingNeeds:
        from readtrack.script import keys

        return CountingNeeds(keys_if_seen={"reading": keys.reading})

    def reporting(self) -> "Reporting":
        from readtrack.script.reporting import ScriptReporting

        return ScriptReporting()
