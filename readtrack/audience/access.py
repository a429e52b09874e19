"""Permission to see who has read an object, and the address of the page that says so."""

from typing import Any

from django.db.models import Model
from django.urls import NoReverseMatch, reverse

from readtrack.access import is_staff_with
from readtrack.subjects import has_read_state, subject_of


def may_view_readers(user: Any) -> bool:
    """Returns True if the user may see which users have read an object: staff with the permission
    `readtrack.view_readers`.

    It is not for authors, and VIEW_NUMBERS does not decide, because it is about people.
    """
    return is_staff_with(user, "readtrack.view_readers")


def readers_url(obj: Model, *, site: str | None = None) -> str:
    """Returns the URL of the page that says who has read the object, in the admin site of that
    name.

    Returns "" for an object without read state, and if there is no such admin site.
    """
    if not has_read_state(obj.__class__):
        return ""
    try:
        return reverse("admin:readtrack_readers", args=[subject_of(obj)], current_app=site)
    except NoReverseMatch:
        return ""
