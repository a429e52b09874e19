"""Permission to see numbers: in the admin, and in the panel of a page."""

from typing import Any

from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.module_loading import import_string

from readtrack.conf import conf, says_true
from readtrack.subjects import author_of, subject_of


def may_view_numbers(user: Any, obj: Model | None = None) -> bool:
    """Returns True if the user may see the numbers of the object, or (None) of the whole site.

    Staff with the permission `readtrack.view_numbers` see all numbers, authors those of their own
    objects (`news_author`). Where VIEW_NUMBERS names a function, it alone decides. A user who may
    see the whole site's numbers sees those of each object.
    """
    if conf.VIEW_NUMBERS:
        return _is_allowed_by_site(user, obj)
    if _has_permission(user):
        return True
    return obj is not None and is_author(user, author_of(obj, of_counts=True))


def may_view_report_of(user: Any, author: str) -> bool:
    """Returns True if the user may see the report of all objects of the author with that primary
    key, because it is the user's own. A function in VIEW_NUMBERS decides about single objects, so
    with one there is no report.
    """
    return not conf.VIEW_NUMBERS and is_author(user, author)


def may_view_any_of(user: Any, author: str) -> bool:
    """Returns False if the user may see no object's numbers of the author with that primary key, so
    that the object need not be loaded.
    """
    return bool(conf.VIEW_NUMBERS) or is_author(user, author) or _has_permission(user)


def is_author(user: Any, author: str) -> bool:
    """Returns True if `author` is the user's primary key."""
    return bool(author and user is not None and user.is_authenticated and str(user.pk) == author)


def _has_permission(user: Any) -> bool:
    # Users who are not of the staff cost no query.
    return bool(getattr(user, "is_staff", False) and user.has_perm("readtrack.view_numbers"))


def _is_allowed_by_site(user: Any, obj: Model | None) -> bool:
    """Returns what the function in VIEW_NUMBERS says of the object, or of the whole site."""
    if user is None or not user.is_authenticated:
        return False
    if _answer_of_site(user, obj):
        return True
    return obj is not None and _answer_of_site(user, None)


def _answer_of_site(user: Any, obj: Model | None) -> bool:
    rule = conf.VIEW_NUMBERS
    return says_true(
        rule, lambda: import_string(rule)(user, obj), otherwise="the numbers are not shown"
    )


def numbers_url(obj: Model, *, site: str | None = None) -> str:
    """Returns the address of the object's page in the admin of that name.

    It is "" on a site without that admin.
    """
    try:
        return reverse("admin:readtrack_object", args=[subject_of(obj)], current_app=site)
    except NoReverseMatch:
        return ""
