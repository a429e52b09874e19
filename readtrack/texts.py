"""How the objects of a site are shown: their titles, and links to them. No function here raises."""

from typing import Any
from urllib.parse import urlsplit

from django.db.models import Model

from readtrack.conf import log_failure
from readtrack.lines import CONTROL, one_line, plain

LONGEST_URL = 2_048  # characters; Django redirects to no longer URL


def is_web(url: str) -> bool:
    """Returns True for `http`, `https` and relative URLs; False for `javascript:` and the like."""
    if len(url) > LONGEST_URL:
        return False
    try:
        url.encode()  # lone surrogates fit into no header and no page
        return urlsplit(CONTROL.sub("", url).strip()).scheme in {"http", "https", ""}
    except ValueError:
        return False


def address_of(obj: Any) -> str:
    """Returns the address of the object's page on the site, by its `get_absolute_url`.

    Returns "" if it has no such method, if the method fails, or if the address is no web address.
    """
    if not hasattr(obj, "get_absolute_url"):
        return ""
    try:
        url = str(obj.get_absolute_url() or "")
    except Exception as error:  # such as NoReverseMatch for one row
        log_failure(
            f"{obj.__class__.__name__}.get_absolute_url",
            "the dashboard has no link to it",
            type(error),
        )
        return ""
    if not is_web(url):
        return ""
    return url


def title_of(obj: Any) -> str:
    """Returns the object as plain text, by its `__str__`; its model and key if that fails."""
    try:
        title = str(obj)
    except Exception as error:
        log_failure(f"{obj.__class__.__name__}.__str__", "its key is shown", type(error))
        title = Model.__str__(obj)
    return plain(title)


def line_of(obj: Any) -> str:
    """Returns the title of the object as `one_line` has it."""
    return one_line(title_of(obj))


def name_of(user: Any) -> str:
    """Returns the full name of the user; the user as plain text if there is no full name."""
    full_name = ""
    if hasattr(user, "get_full_name"):
        try:
            full_name = user.get_full_name()
        except Exception as error:
            log_failure(
                f"{user.__class__.__name__}.get_full_name", "the user is shown as text", type(error)
            )
    return title_of(full_name or user)
