"""Pages of the site."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.urls import include, path

from readtrack.script.shared import shared_page
from shop.models import Category, Post, Thread  # type: ignore[import-not-found]

# The fragment stays in the cache for a few seconds, and so its placeholders are filled in by either
# version.
POST = """{% load cache readtrack %}
{% cache 3 post object.pk %}<p>{% view_count object %}{% unread_dot object.category %}</p>{% endcache %}
{% readtrack_text object %}<p>A text of a few words.</p>{% endreadtrack_text %}
{% readtrack_script %}"""
PLACE = "{% load readtrack %}<p>{% unread_dot object %}</p>"


def post(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a post."""
    row = Post.objects.select_related("category").get(pk=pk)
    request.readtrack.view(row)  # type: ignore[attr-defined]
    return _page(request, row, POST)


@shared_page
def shared(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a post as it is for everybody. The page's script counts it."""
    return post(request, pk)


def buy(request: HttpRequest, pk: int) -> HttpResponse:
    """The last step of a funnel."""
    request.readtrack.step(Post.objects.get(pk=pk), "convert")  # type: ignore[attr-defined]
    return HttpResponse("Bought.")


def category(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a category, which its reader has read by that."""
    return _place(request, Category.objects.get(pk=pk))


def thread(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a thread, which its reader has read by that."""
    return _place(request, Thread.objects.get(pk=pk))


def _place(request: HttpRequest, row: Any) -> HttpResponse:
    request.readtrack.read(row)  # type: ignore[attr-defined]
    return _page(request, row, PLACE)


def _page(request: HttpRequest, row: Any, source: str) -> HttpResponse:
    template = engines["django"].from_string(source)
    return HttpResponse(template.render({"object": row}, request))


urlpatterns = [
    path("posts/<int:pk>/", post),
    path("shared/<int:pk>/", shared),
    path("buy/<int:pk>/", buy),
    path("category/<int:pk>/", category),
    path("thread/<int:pk>/", thread),
    path("readtrack/", include("readtrack.urls")),
]
