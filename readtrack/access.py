"""Permission to see numbers: in the admin, and in the panel of a page."""

from typing import Any

from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.module_loading import import_string

from readtrack.conf import conf, says_true
from readtrack.subjects import author_of, label_of, subject_of


def may_view_numbers(user: Any, obj: Model | None = None) -> bool:
    """Returns True if the user may see the numbers of the object, or (None) of the whole site.

    Staff with the permission `readtrack.view_numbers` see all numbers, authors those of their own
    objects (`news_author`). Where VIEW_NUMBERS names a function, it alone decides. A user who may
    see the whole site's numbers sees those of each object.
    """
    if conf.VIEW_NUMBERS:
        return _is_allowed_by_site(user, obj)
    if is_staff_with(user, "readtrack.view_numbers"):
        return True
    return obj is not None and is_author(user, author_of(obj, of_counts=True))


def is_author(user: Any, author: str) -> bool:
    """Returns True if `author` is the primary key of the signed-in user, as text."""
    return bool(author and user is not None and user.is_authenticated and str(user.pk) == author)


def is_staff_with(user: Any, permission: str) -> bool:
    """Returns True for staff with the permission, such as `readtrack.view_numbers`."""
    # `is_staff` first, because has_perm() makes a query.
    return bool(getattr(user, "is_staff", False) and user.has_perm(permission))


def _is_allowed_by_site(user: Any, obj: Model | None) -> bool:
    """Returns True if the function in VIEW_NUMBERS allows the object, or else the whole site."""
    if user is None or not user.is_authenticated:
        return False
    if _site_says_true(user, obj):
        return True
    return obj is not None and _site_says_true(user, None)


def _site_says_true(user: Any, obj: Model | None) -> bool:
    """Returns True if the function in VIEW_NUMBERS returns True itself.

    Returns False for any other answer, and for an error.
    """
    rule = conf.VIEW_NUMBERS
    return says_true(
        rule, lambda: import_string(rule)(user, obj), otherwise="the numbers are not shown"
    )


def numbers_url(obj: Model, *, site: str | None = None) -> str:
    """Returns the URL of the page with the object's numbers in the admin site of that name.

    Returns "" if there is no such admin site.
    """
    try:
        return reverse("admin:readtrack_object", args=[subject_of(obj)], current_app=site)
    except NoReverseMatch:
        return ""


def counts_url(model: type[Model], *, site: str | None = None) -> str:
    """Returns the URL of the page with the stored counts, at the table of the model, in the admin
    site of that name.

    Returns "" if there is no such admin site.
    """
    try:
        page = reverse("admin:readtrack_viewcounts_changelist", current_app=site)
    except NoReverseMatch:
        return ""
    return f"{page}#{label_of(model)}"
