"""Which pages everybody, or a visitor, may see. A site names these functions in its settings."""

from typing import Any

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from wagtail.models import PageViewRestriction

from readtrack.contrib.wagtail.models_of_site import base_model


def is_public(page: Any) -> bool:
    """Returns True if everybody may see the page: it is live, and no restriction applies to it.

    For `is_public` of a page model in MODELS.
    """
    return bool(page.live) and not page.get_view_restrictions().exists()


def visible(request: HttpRequest, rows: "QuerySet[Model]") -> "QuerySet[Model]":
    """Returns the pages that the visitor may see; all rows of a model that is no page.

    For the `queryset` of DOTS.
    """
    if not issubclass(rows.model, base_model()):
        return rows
    hidden = Q()
    for restriction in PageViewRestriction.objects.select_related("page"):
        if not restriction.accept_request(request):
            hidden |= Q(path__startswith=restriction.page.path)
    rows = rows.filter(live=True)
    return rows.exclude(hidden) if hidden else rows
