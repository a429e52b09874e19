"""The tags in Django's own Jinja2 backend."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.template import engines

from readtrack import tracker
from readtrack.middleware import ReadTrackMiddleware
from tests.site.models import Category, Reply, Thread
from tests.support import factories, forum

pytestmark = pytest.mark.django_db

BRANCHES = (
    "{% if_unread c %}<b>{{ unread_dot(c) }}</b>{% else %}<i>{{ c.name }}</i>{% endif_unread %}"
)


def rendered(source: str, request: Any = None, **values: Any) -> str:
    return str(engines["jinja2"].from_string(source).render(values, request))


def page(rf: Any, user: Any, source: str, **values: Any) -> str:
    """Returns the page as the middleware returns it."""

    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(rendered(source, request, **values))

    request = rf.get("/")
    request.user = user
    response: Any = ReadTrackMiddleware(view)(request)
    return str(response.text)


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("{{ view_count(p) }}", '<span class="readtrack-count" title="1,234">1.2k</span>'),
        ("{{ view_count(p, 'exact') }}", "1,234"),
        (
            "{{ view_count(p, 'words') }}",
            '<span class="readtrack-count" title="1,234">1.2k views</span>',
        ),
        ("{{ view_count(missing) }}{{ unread_dot(missing) }}{{ unread_count(missing) }}", ""),
        ("{% if_unread missing %}new{% else %}old{% endif_unread %}", "old"),
        ("{% if_unread missing %}new{% endif_unread %}", ""),
    ],
)
def test_counts_are_the_same_as_in_django_templates(source: str, html: str, rf: Any) -> None:
    post = factories.post(view_count=1234)
    assert rendered(source, p=post) == html
    assert page(rf, AnonymousUser(), source, p=post) == html


@pytest.mark.needs_parts("numbers")
def test_the_documentations_tags_are_right(rf: Any, settings: Any) -> None:
    document = (Path(__file__).parent.parent / "docs" / "howto" / "templates.md").read_text()
    [source] = re.findall(r"```jinja\n(.*?)```", document, re.DOTALL)
    post, category = factories.post(view_count=1234), factories.category(name="World")
    with forum.forum(settings):
        reply = Reply.objects.create(thread=Thread.objects.create())
        thread = SimpleNamespace(posts=reply.thread.replies)
        values = {"post": post, "category": category, "thread": thread}
        html = page(rf, factories.user(), source, **values)
    expected = {"1.2k": 2, "1.2k views": 1, "1,234": 3, "readtrack-dot": 4, "<b>World</b>": 1}
    assert {text: html.count(text) for text in expected} == expected


@pytest.mark.parametrize("tag", ["unread_dot", "unread_count"])
def test_a_dot_is_there_while_there_is_news(tag: str, rf: Any) -> None:
    user, category = factories.user(), factories.category()
    source = f"{{{{ {tag}(c) }}}}"
    assert "readtrack-dot" in page(rf, user, source, c=category)
    assert "readtrack-dot" in rendered(source, c=category, user=user)
    tracker.mark_read(user, [category])
    assert page(rf, user, source, c=category) == rendered(source, c=category, user=user) == ""


def test_a_block_of_the_template_depends_on_what_is_unread(rf: Any) -> None:
    user, category = factories.user(), factories.category(name="<Old>")
    html = page(rf, user, BRANCHES, c=category)
    assert html == rendered(BRANCHES, c=category, user=user)
    assert html.startswith('<b><span class="readtrack-dot"')
    assert "<i>" not in html
    tracker.mark_read(user, [category])
    assert (
        page(rf, user, BRANCHES, c=category)
        == rendered(BRANCHES, c=category, user=user)
        == "<i>&lt;Old&gt;</i>"
    )


def test_parts_stand_inside_each_other_and_in_loops(rf: Any) -> None:
    user = factories.user()
    read, new = factories.category(name="read"), factories.category(name="new")
    tracker.mark_read(user, [read])
    source = (
        "{% for c in cs %}{% if_unread c %}{{ c.name }}"
        "{% if_unread other %}!{% else %}?{% endif_unread %}{% endif_unread %}{% endfor %}"
    )
    assert page(rf, user, source, cs=[read, new], other=read) == "new?"


def test_it_counts_where_the_site_counts(rf: Any, settings: Any) -> None:
    settings.READTRACK = {"DOTS": {"form": "sequence"}}
    user, category = factories.user(), Category.objects.create(name="c")
    tracker.mark_read(user, [category])
    tracker.mark_unread([category])
    tracker.mark_unread([category])
    assert '<span class="readtrack-unread" title="2">2 ' in page(
        rf, user, "{{ unread_count(c) }}", c=category
    )


def test_an_unknown_form_says_which_there_are(rf: Any) -> None:
    with pytest.raises(ValueError, match=r"'words' or 'exact' .* not 'short'"):
        page(rf, factories.user(), "{{ view_count(p, 'short') }}", p=factories.post())


@pytest.mark.needs_parts("script")
def test_the_script_is_there_as_well(rf: Any) -> None:
    assert "data-page=" in page(rf, AnonymousUser(), "{{ readtrack_script() }}")
