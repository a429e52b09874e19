"""A check of the URLconf."""

from django.core import checks
from django.urls import NoReverseMatch, reverse

from readtrack.conf import conf


def check_script() -> list[checks.CheckMessage]:
    """Checks that the URLconf has the address of the script if the script counts pages."""
    if conf.SHARED_PATHS:
        setting = "SHARED_PATHS"
    elif conf.COUNT_BY == "script":
        setting = "COUNT_BY"
    else:
        return []
    try:
        reverse("readtrack:page")
    except NoReverseMatch:
        return [
            checks.Warning(
                f"READTRACK['{setting}'] leaves pages to the script,"
                " but the URLconf has no address for it, so they are not counted.",
                hint=(
                    "Add path('readtrack/', include('readtrack.urls')),"
                    " and {% readtrack_script %} at the end of <body>."
                ),
                id="readtrack.W028",
            )
        ]
    return []
