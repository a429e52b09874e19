"""Pages for a real browser."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

from django.http import HttpResponse, JsonResponse
from django.template import engines
from django.urls import include, path
from django.views.decorators.cache import cache_page

from readtrack.script.shared import shared_page
from readtrack.script.shown import page_token
from tests.site.models import Category, Post

PAGE = """{% load readtrack %}<!doctype html><title>Post</title>
<p id="views">{% view_count post words %}</p><p id="dot">{% unread_dot post.category %}</p>
<p id="other">{% unread_dot other %}</p>
<a id="list" href="/index/">List</a>{% readtrack_script %}"""

LIVE = """{% load readtrack %}<!doctype html><title>Board</title><link rel="icon" href="data:,">
{% for category in categories %}<p id="dot{{ category.pk }}">{% unread_dot category %}</p>{% endfor %}
<a id="turbo" href="/live-too/">Too</a>
{% if options == "title" %}{% readtrack_live title=True badge=True %}{% else %}{% readtrack_live %}{% endif %}"""

TEXT = """{% load readtrack %}<!doctype html><title>Text</title><link rel="icon" href="data:,">{{ script|safe }}
<style>body { width: 30em; line-height: 1.5 }</style>
{{ comment|safe }}{% readtrack_text post selector %}{{ text|linebreaks }}{% endreadtrack_text %}<footer>About us</footer>{% readtrack_script %}"""

RULES = (
    '<script type="speculationrules">{"%s": [{"eagerness": "immediate", "urls": ["%s"]}]}</script>'
)

LIST = """{% load readtrack %}<!doctype html><title>List</title><link rel="icon" href="data:,">{{ rules|safe }}
{% for post, token in posts %}
<a id="post{{ post.pk }}" href="/{{ kind }}/{{ post.pk }}/" data-token="{{ token }}">{{ post }}</a>
{% endfor %}{% readtrack_script %}"""

# htmx fetches the pages behind links by itself, and puts their bodies in place of this one's.
BOOSTED = """<!doctype html><title>List</title><link rel="icon" href="data:,"><script src="/htmx-2.min.js"></script>
<script src="/ext/hx-preload-2.min.js"></script><body hx-boost="true" hx-ext="preload">
<a id="post{0}" href="/post/{0}/" preload="mouseover">Post</a></body>"""

# htmx 4 does not say which of its requests are ahead.
BOOSTED_4 = """<!doctype html><title>List</title><link rel="icon" href="data:,"><script src="/htmx-4.min.js"></script>
<script src="/ext/hx-preload-4.min.js"></script>
<body><a id="post{0}" href="/post/{0}/" hx-boost="true" hx-preload="mouseover">Post</a></body>"""

# A service worker keeps the post, and hands it to whoever opens it.
KEEPING = """<!doctype html><title>List</title><link rel="icon" href="data:,">
<script>navigator.serviceWorker.register("/worker.js?pk={0}");</script>"""
WORKER = """
const kept = caches.open("posts");
addEventListener("install", event => event.waitUntil(kept.then(cache => cache.add("/post/%d/"))));
addEventListener("fetch", event => {
  if (event.request.method != "GET") return;
  event.respondWith(caches.match(event.request.url).then(found => found || fetch(event.request)));
});
"""

# Turbo does it, too, from wherever the mouse is.
TURBO = """<!doctype html><title>List</title><link rel="icon" href="data:,"><script src="/turbo.js"></script>
<a id="post{0}" href="/post/{0}/">Post</a>"""

# A script of the site puts the body of a page in place of this one's, and what that has of scripts stays idle.
# While the mouse is over a link it fetches the page ahead.
SWAPPING = """{% load readtrack %}<!doctype html><title>List</title><link rel="icon" href="data:,">
<script>
const pages = {};
const fetched = link => (pages[link.href] ??= fetch(link.href).then(answer => answer.text()));
addEventListener("mouseover", ({ target }) => target.href && fetched(target));
addEventListener("click", async event => {
  if (!event.target.href) return;
  event.preventDefault();
  const page = new DOMParser().parseFromString(await fetched(event.target), "text/html");
  history.pushState({}, "", event.target.href);
  document.body.replaceWith(page.body);
});
</script>
<body>{% for post, token in posts %}<a id="post{{ post.pk }}" href="/{{ kind }}/{{ post.pk }}/">{{ post }}</a>
{% endfor %}{% readtrack_script %}</body>"""

# A visitor's HTML stands above the page's own, as a sanitiser lets it through that keeps id, name and data-*.
COMMENTED = """{% load readtrack %}<!doctype html><title>Post</title><link rel="icon" href="data:,">{{ comment|safe }}
{% if post %}<p id="views">{% view_count post words %}</p>{% endif %}{% readtrack_script %}"""

COMMENTS: dict[str, str] = {}
POLICY: dict[str, str] = {}
TEXTS: dict[str, str] = {}
asked: Counter[str] = Counter()  # requests for posts by what they were for


def post(request: Any, pk: int) -> HttpResponse:
    asked[request.headers.get("Sec-Purpose", "")] += 1
    found = Post.objects.select_related("category").get(pk=pk)
    request.readtrack.view(found)
    request.readtrack.read(found.category)
    other = Category.objects.exclude(pk=found.category_id).first()
    return HttpResponse(
        engines["django"].from_string(PAGE).render({"post": found, "other": other}, request)
    )


def policed(request: Any, pk: int) -> HttpResponse:
    """The post under the policy of the moment, with a nonce as django-csp gives it."""
    request.csp_nonce = "abc123"
    response = post(request, pk)
    response["Content-Security-Policy"] = POLICY["now"].format(request.csp_nonce)
    return response


def text(request: Any, pk: int) -> HttpResponse:
    found = Post.objects.get(pk=pk)
    request.readtrack.view(found)
    script = f"<script>{TEXTS.get('script', '')}</script>"
    context = {
        "post": found,
        "text": TEXTS["now"],
        "selector": TEXTS.get("selector", ""),
        "script": script,
        "comment": COMMENTS.get("now", ""),
    }
    return HttpResponse(engines["django"].from_string(TEXT).render(context, request))


def commented(request: Any, pk: int = 0) -> HttpResponse:
    """The post below a visitor's HTML; or that alone, on a page that shows no post."""
    found = Post.objects.filter(pk=pk).first()
    if found:
        request.readtrack.view(found)
    context = {"post": found, "comment": COMMENTS["now"]}
    return HttpResponse(engines["django"].from_string(COMMENTED).render(context, request))


def live(request: Any) -> HttpResponse:
    """The dots of all categories. With ?read= it puts one of them out."""
    categories = Category.objects.order_by("pk")
    if "read" in request.GET:
        request.readtrack.read(categories.get(pk=request.GET["read"]))
    context = {"categories": categories, "options": request.GET.get("options", "")}
    return HttpResponse(engines["django"].from_string(LIVE).render(context, request))


def token(request: Any, post: Post) -> str:
    assert post.category
    return page_token(request, views=[post], reads=[post.category])


def index(request: Any) -> HttpResponse:
    kind = request.GET.get("kind", "post")
    rule, pk = request.GET.get("rule", ""), request.GET.get("pk", "")
    found = Post.objects.select_related("category").order_by("pk")
    context = {
        "kind": kind,
        "posts": [(one, token(request, one)) for one in found],
        "rules": RULES % (rule, f"/{kind}/{pk}/") if rule else "",
    }
    return HttpResponse(engines["django"].from_string(LIST).render(context, request))


def swapping(request: Any) -> HttpResponse:
    """A list with readtrack's script, whose links are swapped by the site or by Turbo."""
    is_turbo = "turbo" in request.GET
    page = SWAPPING
    if is_turbo:
        page = re.sub(
            "<script>.*</script>", '<script src="/turbo.js"></script>', page, flags=re.DOTALL
        )
    posts = [(one, "") for one in Post.objects.order_by("pk")]
    context = {"posts": posts, "kind": request.GET.get("kind", "post")}
    return HttpResponse(engines["django"].from_string(page).render(context, request))


def boosted(request: Any) -> HttpResponse:
    return HttpResponse(BOOSTED.format(request.GET["pk"]))


def boosted_4(request: Any) -> HttpResponse:
    return HttpResponse(BOOSTED_4.format(request.GET["pk"]))


def keeping(request: Any) -> HttpResponse:
    return HttpResponse(KEEPING.format(request.GET["pk"]))


def worker(request: Any) -> HttpResponse:
    return HttpResponse(WORKER % int(request.GET["pk"]), content_type="text/javascript")


def turbo(request: Any) -> HttpResponse:
    return HttpResponse(TURBO.format(request.GET["pk"]))


def vendored(request: Any) -> HttpResponse:
    """Turbo 8.0.23, of the npm package @hotwired/turbo."""
    content = Path(__file__).with_name("vendor").joinpath("turbo.js").read_bytes()
    return HttpResponse(content, content_type="text/javascript")


def library(request: Any, name: str) -> HttpResponse:
    """A file of htmx."""
    content = files("django_htmx").joinpath("static", "django_htmx", *name.split("/")).read_bytes()
    return HttpResponse(content, content_type="text/javascript")


def data(request: Any, pk: int) -> JsonResponse:
    """The post as an app asks for it."""
    found = Post.objects.get(pk=pk)
    return JsonResponse({"token": token(request, found)})


urlpatterns = [
    path("assets/", include("readtrack.urls")),
    path("post/<int:pk>/", post),
    path("cached/<int:pk>/", cache_page(600, cache="pages")(post)),
    path("shared/<int:pk>/", shared_page(post)),
    path("policy/<int:pk>/", policed),
    path("policy-shared/<int:pk>/", shared_page(policed)),
    path("text/<int:pk>/", text),
    path("commented/<int:pk>/", commented),
    path("commented/", commented),
    path("live/", live),
    path("live-too/", live),
    path("live-shared/", shared_page(live)),
    path("index/", index),
    path("swapping/", swapping),
    path("boosted/", boosted),
    path("boosted-4/", boosted_4),
    path("keeping/", keeping),
    path("worker.js", worker),
    path("turbo/", turbo),
    path("turbo.js", vendored),
    path("data/<int:pk>/", data),
    path("<path:name>.min.js", lambda request, name: library(request, f"{name}.min.js")),
]
