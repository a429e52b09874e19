"""Posts whose links a library swaps: it fetches the next page and puts its `<main>` in place."""

import sys
from pathlib import Path
from typing import Any

from django.http import HttpResponse
from django.template import engines
from django.urls import include, path

from tests.site.models import Post

# By library: its files in node_modules, what starts it, attributes of the elements.
LIBRARIES: dict[str, dict[str, Any]] = {
    "swup": {
        "files": ["swup/dist/Swup.umd.js", "@swup/preload-plugin/dist/index.umd.js"],
        "start": "new Swup({animationSelector: false, plugins: [new SwupPreloadPlugin()]})",
        "main": 'id="swup"',
    },
    "swup with its plugin for scripts": {
        "files": ["swup/dist/Swup.umd.js", "@swup/scripts-plugin/dist/index.umd.js"],
        "start": "new Swup({animationSelector: false,"
        " plugins: [new SwupScriptsPlugin({head: false, body: true})]})",
        "main": 'id="swup"',
    },
    "barba": {
        "files": ["@barba/core/dist/barba.umd.js"],
        "start": "barba.init()",
        "body": 'data-barba="wrapper"',
        "main": 'data-barba="container" data-barba-namespace="post"',
    },
    "Taxi": {
        "files": ["@unseenco/e/dist/e.umd.js", "@unseenco/taxi/dist/taxi.umd.js"],
        "start": "new taxi.Core()",
        "around": "data-taxi",
        "main": "data-taxi-view",
    },
    "pjax": {
        "files": ["pjax/pjax.js"],
        "start": 'new Pjax({selectors: ["main"], cacheBust: false})',
        "is_counted_by_server": True,
    },
    "jquery-pjax": {
        "files": ["jquery/dist/jquery.js", "jquery-pjax/jquery.pjax.js"],
        "start": '$(document).pjax("a", "#around", {fragment: "#around", timeout: 60000})',
        "around": 'id="around"',
        "is_counted_by_server": True,
    },
    "Alpine AJAX": {
        "files": ["@imacrayon/alpine-ajax/dist/cdn.js", "alpinejs/dist/cdn.js"],
        "start": "",
        "body": "x-data",
        "link": 'x-target.push="main"',
        "main": 'id="main"',
    },
}
PAGE = """{% load readtrack %}<!doctype html><title>{{ post }}</title><link rel="icon" href="data:,">
<body {{ body|safe }}>
<nav>{% for one in posts %}<a id="to{{ one.pk }}" {{ link|safe }} href="{{ base }}{{ one.pk }}/">{{ one }}</a>{% endfor %}</nav>
<div {{ around|safe }}><main {{ main|safe }}><h1 id="shows{{ post.pk }}">{{ post }}</h1>
<p id="views">{% view_count post words %}</p>
{# They take the tag out and run the script without what the tag says of the page. #}
{% if not is_counted_by_server or not request.headers.x_pjax %}{% readtrack_script %}{% endif %}</main></div>
{% for file in files %}<script defer src="/node_modules/{{ file }}"></script>{% endfor %}
<script>addEventListener("DOMContentLoaded", () => { {{ start|safe }} });</script></body>"""


def post(request: Any, library: str, pk: int) -> HttpResponse:
    shown = Post.objects.get(pk=pk)
    request.readtrack.view(shown)
    context = {
        "post": shown,
        "posts": Post.objects.order_by("pk"),
        "base": f"/{library}/",
        **LIBRARIES[library],
    }
    return HttpResponse(engines["django"].from_string(PAGE).render(context, request))


def module(request: Any, name: str) -> HttpResponse:
    content = Path(sys.prefix, "node_modules", name).read_bytes()
    return HttpResponse(content, content_type="text/javascript")


urlpatterns = [
    path("assets/", include("readtrack.urls")),
    path("node_modules/<path:name>", module),
    path("<str:library>/<int:pk>/", post),
]
