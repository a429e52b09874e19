"""How a site's objects are shown: their titles, and links to them. None of it raises."""

import re
from typing import Any
from urllib.parse import urlsplit

from django.db.models import Model

from readtrack.conf import log_failure

LONGEST_URL = 2_048  # characters; Django redirects to no longer one
# Browsers leave some of these out, so that `java\nscript:` would be `javascript:`. Neither XML nor
# a page can hold all of them, and in files some separate lines and cells.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def plain(text: str) -> str:
    """Returns the text with spaces for control characters, line breaks and lone surrogates."""
    return CONTROL.sub(" ", text)


def one_line(text: str) -> str:
    """Returns the text as one line for terminals and logs.

    It has no control and no bidirectional characters.
    """
    return "".join(char if char.isprintable() else " " for char in text)


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
    """Returns the address of the object's page on the site.

    It is "" if there is none, if the site's method fails, or if a browser would not open it as a
    page.
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
    return url if is_web(url) else ""


def title_of(obj: Any) -> str:
    """Returns the object as plain text; its model and key if the site's method fails."""
    try:
        title = str(obj)
    except Exception as error:
        log_failure(f"{obj.__class__.__name__}.__str__", "its key is shown", type(error))
        title = Model.__str__(obj)
    return plain(title)


def name_of(user: Any) -> str:
    """Returns the user's full name; the user as text where there is none."""
    full_name = user.get_full_name() if hasattr(user, "get_full_name") else ""
    return title_of(full_name or user)
