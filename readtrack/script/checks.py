"""Checks of the setting SCRIPT, and of what the page's script needs."""

from django.core import checks
from django.urls import NoReverseMatch, reverse

from readtrack.checks.middleware import MIDDLEWARE, precedes
from readtrack.script import options

CSP = ("django.middleware.csp.ContentSecurityPolicyMiddleware", "csp.middleware.CSPMiddleware")


def check_setting() -> list[checks.CheckMessage]:
    """Checks that SCRIPT can be used."""
    return [
        checks.Error(
            f"READTRACK['SCRIPT'] cannot be used: {problem}.",
            hint=(
                "It may have 'name': letters, digits, '.', - and _, such as 'page.js'; 'count_by':"
                " 'either', 'server' or 'script'; 'reads': 'shown' or 'read'; 'shared_paths': a"
                " list of regular expressions, with special characters escaped as re.escape does."
            ),
            id="readtrack.E027",
        )
        for problem in options.problems()
    ]


def check_address() -> list[checks.CheckMessage]:
    """Checks that the URLconf has the address of the script if the script counts pages."""
    if options.shared_paths():
        key = "shared_paths"
    elif options.count_by() == "script":
        key = "count_by"
    else:
        return []
    try:
        reverse("readtrack:page")
    except NoReverseMatch:
        return [
            checks.Warning(
                f"READTRACK['SCRIPT'] leaves pages to the script by {key!r},"
                " but the URLconf has no address for it, so they are not counted.",
                hint=(
                    "Add path('readtrack/', include('readtrack.urls')),"
                    " and {% readtrack_script %} at the end of <body>."
                ),
                id="readtrack.W028",
            )
        ]
    return []


def check_csp() -> list[checks.CheckMessage]:
    """Checks that a page out of `cache_page` gets its nonce before the policy is sent."""
    return [
        checks.Warning(
            f"'{path}' comes after ReadTrackMiddleware, so on a page out of cache_page the browser"
            " refuses the script: the nonce is put into the page when the policy is made already.",
            hint=f"Move '{path}' above 'readtrack.middleware.ReadTrackMiddleware' in MIDDLEWARE.",
            id="readtrack.W051",
        )
        for path in CSP
        if precedes(MIDDLEWARE, path)
    ]
