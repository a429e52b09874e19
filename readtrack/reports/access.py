"""Permission to see numbers: in the admin, and in the panel of a page."""

from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.module_loading import import_string

from readtrack.conf import conf
from readtrack.hits.visitors import says_true
from readtrack.models import Tracked
from readtrack.subjects import subject_of

PERMISSION = "readtrack.view_numbers"


def may_view_numbers(user: Any, obj: Model | None = None) -> bool:
    """Returns True if the user may see the numbers of the object, or (None) of the whole site.

    Staff with the permission `readtrack.view_numbers` see all, authors their own (`news_author`). Where VIEW_NUMBERS
    names a function, it alone decides.
    """
    if not conf.VIEW_NUMBERS:
        return may_view_all(user) or (obj is not None and is_author(user, author_of(obj)))
    if user is None or not user.is_authenticated:
        return False
    rule = conf.VIEW_NUMBERS
    return says_true(rule, lambda: import_string(rule)(user, obj), otherwise="the numbers are not shown")


def may_view_all(user: Any) -> bool:
    """Returns True for staff with the permission. Others cost no query."""
    return bool(getattr(user, "is_staff", False) and user.has_perm(PERMISSION))


def is_author(user: Any, author: str) -> bool:
    """Returns True if `author` is the user's primary key."""
    return bool(author and user is not None and user.is_authenticated and str(user.pk) == author)


def author_of(obj: Model) -> str:
    """Returns the primary key of the object's author as text; "" without one."""
    field = author_field(type(obj))
    key = getattr(obj, field.attname) if field else None
    return "" if key is None else str(key)


def author_field(model: type[Model]) -> Any:
    """Returns the foreign key that the model's `news_author` names; None without one, or if it leads to no user."""
    field: Any = model._meta.get_field(model.news_author) if issubclass(model, Tracked) and model.news_author else None
    leads_to_users = field and field.related_model is get_user_model() and field.target_field.primary_key
    return field if leads_to_users else None


def numbers_url(obj: Model) -> str:
    """Returns the address of the object's page in the admin; "" on a site without that admin."""
    try:
        return reverse("admin:readtrack_object", args=[subject_of(obj)])
    except NoReverseMatch:
        return ""
