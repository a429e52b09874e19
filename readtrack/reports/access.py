"""Permission to see numbers: in the admin, and in the panel of a page."""

from typing import Any

from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.module_loading import import_string

from readtrack.conf import conf, says_true
from readtrack.subjects import author_of, subject_of


def may_view_numbers(user: Any, obj: Model | None = None) -> bool:
    """Returns True if the user may see the numbers of the object, or (None) of the whole site.

    Staff with the permission `readtrack.view_numbers` see all, authors their own (`news_author`).
    Where VIEW_NUMBERS names a function, it alone decides; whoever may see the whole site's numbers
    sees those of each object.
    """
    if not conf.VIEW_NUMBERS:
        # Those who are not of the staff cost no query.
        may_view_all = getattr(user, "is_staff", False) and user.has_perm("readtrack.view_numbers")
        return bool(
            may_view_all or (obj is not None and is_author(user, author_of(obj, of_counts=True)))
        )
    if user is None or not user.is_authenticated:
        return False
    return _allows(user, obj) or (obj is not None and _allows(user, None))


def _allows(user: Any, obj: Model | None) -> bool:
    rule = conf.VIEW_NUMBERS
    return says_true(
        rule, lambda: import_string(rule)(user, obj), otherwise="the numbers are not shown"
    )


def is_author(user: Any, author: str) -> bool:
    """Returns True if `author` is the user's primary key."""
    return bool(author and user is not None and user.is_authenticated and str(user.pk) == author)


def numbers_url(obj: Model, *, site: str | None = None) -> str:
    """Returns the address of the object's page in the admin of that name.

    It is "" on a site without that admin.
    """
    try:
        return reverse("admin:readtrack_object", args=[subject_of(obj)], current_app=site)
    except NoReverseMatch:
        return ""
