"""Checks of the digest, which the setting DIGEST turns on."""

from django.core import checks
from django.urls import NoReverseMatch, reverse

from readtrack.conf import conf
from readtrack.digest.options import digest_options, digest_problems
from readtrack.numbers.options import numbers_options

#: What Django sends from where a site does not say it. Mail servers refuse it.
DEFAULT_SENDER = "webmaster@localhost"


def check_setting() -> list[checks.CheckMessage]:
    """Checks that DIGEST can be used."""
    return [
        checks.Error(
            f"READTRACK['DIGEST'] cannot be used: {problem}.",
            hint=(
                "Give it 'site', such as 'https://example.com', or the path of a function that"
                " returns it;"
                " and if you like 'every': 'week' or 'day'; 'authors': True; 'from': a sender;"
                " 'users': the path of a function that returns the users who may get the site's"
                " numbers; 'locale': the path of a function that takes a user and returns a"
                " language and a time zone, such as ('de', 'Europe/Berlin')."
            ),
            id="readtrack.E081",
        )
        for problem in digest_problems()
    ]


def check_history() -> list[checks.CheckMessage]:
    """Checks that the numbers of a week or a day are stored."""
    if not conf.of_part("DIGEST") or numbers_options().history:
        return []
    return [
        checks.Error(
            "READTRACK['DIGEST'] is set, but NUMBERS has 'history': False, so no numbers of a"
            " period are stored.",
            hint="Leave 'history' out of NUMBERS, or take DIGEST out.",
            id="readtrack.E082",
        )
    ]


def check_address() -> list[checks.CheckMessage]:
    """Checks that the URLconf has the address with which readers stop the digest."""
    if not conf.of_part("DIGEST"):
        return []
    try:
        reverse("readtrack:digest", args=["x"])
    except NoReverseMatch:
        return [
            checks.Warning(
                "READTRACK['DIGEST'] is set, but the URLconf has no address with which readers"
                " stop the mails.",
                hint="Add path('readtrack/', include('readtrack.urls')).",
                id="readtrack.W083",
            )
        ]
    return []


def check_sender() -> list[checks.CheckMessage]:
    """Checks that the mails have a sender."""
    if not conf.of_part("DIGEST") or digest_options().sender != DEFAULT_SENDER:
        return []
    return [
        checks.Warning(
            f"The digest would be sent from {DEFAULT_SENDER}, which mail servers refuse.",
            hint="Set DEFAULT_FROM_EMAIL, or READTRACK['DIGEST']['from'].",
            id="readtrack.W084",
        )
    ]


def check_authors() -> list[checks.CheckMessage]:
    """Checks that authors may see the report of their objects."""
    if not (digest_options().authors and conf.VIEW_NUMBERS):
        return []
    return [
        checks.Warning(
            "READTRACK['DIGEST'] has 'authors', but authors get no digest, because VIEW_NUMBERS"
            " decides about each object by itself.",
            hint="Take 'authors' out of DIGEST, or VIEW_NUMBERS out of READTRACK.",
            id="readtrack.W085",
        )
    ]
