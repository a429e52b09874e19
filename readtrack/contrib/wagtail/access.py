"""Permission to see numbers in Wagtail's admin."""

from typing import Any

from django.db.models import Model

from readtrack import access
from readtrack.conf import conf


def may_view_numbers(user: Any, page: Model | None = None) -> bool:
    """Returns True if the user may see the numbers of the page, or (None) of the whole site.

    The rule is that of the dashboard. Instead of `is_staff`, which is about Django's admin, the
    user needs the permission for Wagtail's admin.
    """
    if user is None or not user.is_authenticated:
        return False
    if not user.has_perm("wagtailadmin.access_admin"):
        return False
    if access.may_view_numbers(user, page):
        return True
    return not conf.VIEW_NUMBERS and bool(user.has_perm("readtrack.view_numbers"))


def numbers_url(user: Any, page: Model) -> str:
    """Returns the URL of the dashboard's page about the page.

    Returns "" for a user who cannot open Django's admin, and if the site has no such admin.
    """
    if not user.is_staff:
        return ""
    return access.numbers_url(page)
