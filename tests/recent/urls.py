"""Pages that show what their reader opened lately."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template import engines
from django.urls import include, path
from django.views.generic import DetailView

from readtrack.request import TrackedRequest
from readtrack.script.shared import shared_page
from tests.site.models import Post, Product

DJANGO = (
    "{% load readtrack %}{% recently_viewed limit=3 as posts %}"
    "{% for post in posts %}{{ post.title }},{% endfor %}"
)
JINJA = "{% for post in recently_viewed(limit=3, of='site.Post') %}{{ post.title }},{% endfor %}"


def rendered(request: HttpRequest, *, engine: str = "django") -> HttpResponse:
    template = engines[engine].from_string(DJANGO if engine == "django" else JINJA)
    return HttpResponse(template.render({}, request))


class PostPage(DetailView):
    model = Post

    def render_to_response(self, context: dict[str, object], **values: object) -> HttpResponse:
        template = engines["django"].from_string(DJANGO)
        return HttpResponse(template.render(context, self.request))


def function(request: TrackedRequest, pk: int) -> HttpResponse:
    request.readtrack.view(get_object_or_404(Post, pk=pk))
    return rendered(request)


def plain(request: TrackedRequest, pk: int) -> HttpResponse:
    request.readtrack.view(get_object_or_404(Post, pk=pk))
    return HttpResponse()


def product(request: TrackedRequest, pk: str) -> HttpResponse:
    request.readtrack.view(get_object_or_404(Product, pk=pk))
    return HttpResponse()


async def coroutine(request: TrackedRequest) -> HttpResponse:
    return rendered(request)


urlpatterns = [
    path("readtrack/", include("readtrack.urls")),
    path("posts/<int:pk>/", PostPage.as_view()),
    path("posts/<int:pk>/function/", function),
    path("posts/<int:pk>/plain/", plain),
    path("products/<uuid:pk>/", product),
    path("list/", rendered),
    path("list/jinja/", rendered, {"engine": "jinja2"}),
    path("list/shared/", shared_page(rendered)),
    path("list/async/", coroutine),
]
