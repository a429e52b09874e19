"""Pages for a real browser."""

from collections import Counter
from importlib.resources import files
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.template import engines
from django.urls import include, path
from django.views.decorators.cache import cache_page

from readtrack.page.shown import page_token
from readtrack.request import shared_page
from tests.site.models import Post

PAGE = """{% load readtrack %}<!doctype html><title>Post</title>
<p id="views">{% view_count post words %}</p><p id="dot">{% unread_dot post.category %}</p>
<a id="list" href="/index/">List</a>{% readtrack_script %}"""

TEXT = """{% load readtrack %}<!doctype html><title>Text</title><link rel="icon" href="data:,">
<style>body { width: 30em; line-height: 1.5 }</style>
{% readtrack_text post %}{{ text|linebreaks }}{% endreadtrack_text %}<footer>About us</footer>{% readtrack_script %}"""

RULES = '<script type="speculationrules">{"%s": [{"eagerness": "immediate", "urls": ["%s"]}]}</script>'

LIST = """{% load readtrack %}<!doctype html><title>List</title><link rel="icon" href="data:,">{{ rules|safe }}
{% for post, token in posts %}
<a id="post{{ post.pk }}" href="/{{ kind }}/{{ post.pk }}/" data-token="{{ token }}">{{ post }}</a>
{% endfor %}{% readtrack_script %}"""

# htmx fetches the pages behind links by itself, and puts their bodies in place of this one's.
BOOSTED = """<!doctype html><title>List</title><link rel="icon" href="data:,"><script src="/htmx-2.min.js"></script>
<script src="/ext/hx-preload-2.min.js"></script><body hx-boost="true" hx-ext="preload">
<a id="post{0}" href="/post/{0}/" preload="mouseover">Post</a></body>"""

POLICY: dict[str, str] = {}
TEXTS: dict[str, str] = {}
asked: Counter[str] = Counter()  # requests for posts by what they were for


def post(request: Any, pk: int) -> HttpResponse:
    asked[request.headers.get("Sec-Purpose", "")] += 1
    found = Post.objects.select_related("category").get(pk=pk)
    request.readtrack.view(found)
    request.readtrack.read(found.category)
    return HttpResponse(engines["django"].from_string(PAGE).render({"post": found}, request))


def policed(request: Any, pk: int) -> HttpResponse:
    """The post under the policy of the moment, with a nonce as django-csp gives it."""
    request.csp_nonce = "abc123"
    response = post(request, pk)
    response["Content-Security-Policy"] = POLICY["now"].format(request.csp_nonce)
    return response


def text(request: Any, pk: int) -> HttpResponse:
    found = Post.objects.get(pk=pk)
    request.readtrack.view(found)
    return HttpResponse(engines["django"].from_string(TEXT).render({"post": found, "text": TEXTS["now"]}, request))


def index(request: Any) -> HttpResponse:
    kind = request.GET.get("kind", "post")
    rule, pk = request.GET.get("rule", ""), request.GET.get("pk", "")
    found = Post.objects.order_by("pk")
    context = {
        "kind": kind,
        "posts": [(one, page_token(request, views=[one])) for one in found],
        "rules": RULES % (rule, f"/{kind}/{pk}/") if rule else "",
    }
    return HttpResponse(engines["django"].from_string(LIST).render(context, request))


def boosted(request: Any) -> HttpResponse:
    return HttpResponse(BOOSTED.format(request.GET["pk"]))


def library(request: Any, name: str) -> HttpResponse:
    """A file of htmx."""
    content = files("django_htmx").joinpath("static", "django_htmx", *name.split("/")).read_bytes()
    return HttpResponse(content, content_type="text/javascript")


def data(request: Any, pk: int) -> JsonResponse:
    """The post as an app asks for it."""
    return JsonResponse({"token": page_token(request, views=[Post.objects.get(pk=pk)])})


urlpatterns = [
    path("assets/", include("readtrack.urls")),
    path("post/<int:pk>/", post),
    path("cached/<int:pk>/", cache_page(600, cache="pages")(post)),
    path("shared/<int:pk>/", shared_page(post)),
    path("policy/<int:pk>/", policed),
    path("text/<int:pk>/", text),
    path("index/", index),
    path("boosted/", boosted),
    path("data/<int:pk>/", data),
    path("<path:name>.min.js", lambda request, name: library(request, f"{name}.min.js")),
]
