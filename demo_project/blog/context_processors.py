"""What every page of the newsroom shows."""

from django.db.models import QuerySet
from django.http import HttpRequest

from demo_project.blog.models import Category


def newsroom(request: HttpRequest) -> dict[str, QuerySet[Category]]:
    """The sections in the navigation; queried only where a template goes through them."""
    return {"categories": Category.objects.all()}
