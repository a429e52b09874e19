"""What visitors and editors type is shown as text, in every place that shows it."""

import json
import logging
import re
from contextlib import suppress
from io import StringIO
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpRequest
from django.test import Client
from django.urls import path
from pytest_django import Settings

from readtrack import buckets, tracker
from readtrack.dashboard.navigation import TABS
from readtrack.flush.run import flush
from readtrack.models import FlushRun
from readtrack.numbers.models import Note
from readtrack.store.skips import skip_buffer
from readtrack.subjects import subject_of
from tests.imports import weblogs
from tests.page import test_panel
from tests.page.test_panel import plain
from tests.site.models import Article, Category, Post
from tests.site.urls import urlpatterns as urls_of_site
from tests.support import factories

pytestmark = pytest.mark.django_db

DASHBOARD = "/admin/readtrack/dashboard/"

HOSTILE = {
    "HTML": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "quotes": "\"'`><i onmouseover=alert(1)>",
    "control characters": "a\ufffe\x00\x07\x1b[31m\x08\r\nSet-Cookie: b=1\x85",
    "bidirectional": "\u202eexe.gnp\u2066\u200f",
    "lone surrogate": "a\ud800b\udfff",
    "formula": "=cmd|' /C calc'!A1",
    "template": '{{ "evil"|upper }}{% now "Y" %}${7*7}#{7*7}',
    "format": "%s %(title)s {0} {title} %d %",
    "long": "x" * 50_000,
    "scheme": "javascript:alert(1)",
    "tag of the script": "</script></title></svg>--><!--",
}
# What would be read as HTML, or as a template, if a page did not escape it.
ALIVE = re.compile(r"<script>alert|<img src=x|<i onm|EVIL|</title></svg>|href=\"javascript:")
SCHEMES = re.compile(r"\s*(javascript|data|vbscript):", re.IGNORECASE)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066\u200f\ud800-\udfff]")


def said(request: HttpRequest) -> str:
    """A dimension of the site's own, which takes what a visitor sends."""
    return str(request.META.get("HTTP_X_SAID", ""))


urlpatterns = [*urls_of_site, path("panel/", plain)]


@pytest.fixture(params=HOSTILE)
def text(request: pytest.FixtureRequest) -> str:
    return HOSTILE[request.param]


@pytest.fixture
def article(text: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Article:
    """Makes an article whose title, category and author have the text, and a visitor and robots
    that send it.
    """
    settings.ROOT_URLCONF = __name__
    settings.READTRACK = {
        "NUMBERS": {
            "dimensions": ["referrer", "country", "browser", f"{__name__}.said"],
            "country_header": "X-Country",
            "funnels": True,
        },
        "MODELS": {"site.Category": {"read_state": True}},
    }
    for model in (Article, Category, User):
        monkeypatch.setattr(model, "__str__", lambda obj: text)
    monkeypatch.setattr(User, "get_full_name", lambda user: text)
    monkeypatch.setattr(Article, "get_absolute_url", lambda obj: text, raising=False)
    author = factories.user(is_staff=True)
    section = factories.category()
    return Article.objects.create(title="t", author=author, category=section)


def send(text: str, agent: str) -> None:
    """Sends the text in everything that a visitor may send."""
    sent = {
        "User-Agent": agent,
        "Referer": f"https://{text}/",
        "Accept-Language": text,
        "X-Said": text,
        "X-Country": text,
        "X-Forwarded-For": text,
        "Cookie": f"anon_id={text}; django_language={text}",
    }
    # WSGI servers hand headers over so, whatever their bytes mean.
    raw = {
        name: value.encode(errors="surrogatepass").decode("latin-1") for name, value in sent.items()
    }
    for headers in (sent, raw):
        client = Client(headers={name: headers[name] for name in headers if name != "Cookie"})
        client.get("/panel/", HTTP_COOKIE=raw["Cookie"])
        client.get("/readtrack/page.js", {"x": text.encode(errors="replace")})


def visit(text: str, article: Article) -> None:
    """Sends views, refused robots, a note and a failed flush that have the text."""
    send(text, factories.BROWSER)
    send(text, f"Evilbot/1.0 {text}")
    send(text, f"{text}bot")
    skip_buffer.send_rest()
    for _ in range(3):
        tracker.record(
            factories.hit(subject_of(article), dimensions=(("said", "x"), ("referrer", "y")))
        )
    storable = text.replace("\0", "").encode(errors="ignore").decode()[:200]
    Note.objects.create(day=buckets.now().date(), text=storable)
    flush()
    tracker.refresh_trending()
    run = FlushRun.objects.order_by("-started")[0]
    FlushRun.objects.create(
        kind="full", started=buckets.now(), ended=buckets.now(), error=storable * 3
    )
    assert run.error == ""


def check_page(answer: Any) -> None:
    assert answer.status_code == 200
    page = answer.content.decode()  # of which each character is one that a page can hold
    assert not ALIVE.search(page), ALIVE.search(page)
    for address in re.findall(r'href="([^"]*)"', page):
        assert not SCHEMES.match(address), address


def test_pages_of_the_admin_show_it_as_text(
    text: str, article: Article, admin_client: Client
) -> None:
    visit(text, article)
    languages = cycle(("en", "ar", text.encode("ascii", "replace").decode()))
    for tab, language in zip(TABS, languages, strict=False):
        check_page(admin_client.get(DASHBOARD, {"tab": tab}, headers={"Accept-Language": language}))
    typed = text.encode(errors="replace").decode()  # as an address holds it
    names = ("model", "object", "category", "author", "referrer", "said", "period", "from")
    for name in names:
        check_page(admin_client.get(DASHBOARD, {name: typed}, follow=True))
    everywhere = dict.fromkeys((*names, "tab", "to"), typed)
    check_page(admin_client.get(DASHBOARD, everywhere, follow=True))
    assert article.category is not None
    category = subject_of(article.category)
    for filters in ({"author": str(article.author_id)}, {"category": category}):
        check_page(admin_client.get(DASHBOARD, filters))
    check_page(admin_client.get(f"{DASHBOARD}object/{subject_of(article)}/"))
    check_page(admin_client.get("/admin/readtrack/flushrun/"))
    check_page(admin_client.get("/admin/readtrack_numbers/note/"))
    check_page(factories.browser(article.author).get(f"{DASHBOARD}author/"))


@pytest.mark.parametrize("text", [HOSTILE["scheme"], " Data:text/html,x"])
def test_its_address_is_a_link_only_where_that_is_a_page(
    text: str, article: Article, admin_client: Client
) -> None:
    visit(text, article)
    check_page(admin_client.get(f"{DASHBOARD}object/{subject_of(article)}/"))


def test_exports_hold_it_as_text(text: str, article: Article, admin_client: Client) -> None:
    visit(text, article)
    tables = [
        "over-time",
        "most-viewed",
        "grew-most",
        "trending",
        "now",
        "by-referrer",
        "by-country",
        "by-said",
        "really-read",
        "funnel",
        "sections",
        "not-counted",
        "robots",
    ]
    for table in tables:
        content = exported(admin_client, table, "csv")
        assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", content)
        assert not re.search(r'(^|[;,])\s*"?\s*[=+@]', content, re.MULTILINE)
    for table in ("over-time", "most-viewed", "by-said", "sections", "robots"):
        json.loads(exported(admin_client, table, "json"))  # one function writes all of them


def exported(client: Client, table: str, kind: str) -> str:
    answer: Any = client.get(DASHBOARD, {"table": table, "format": kind})
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()


def test_the_panel_shows_it_as_text(text: str, article: Article, settings: Settings) -> None:
    visit(text, article)
    answer = factories.browser(test_panel.an_editor()).get("/panel/")
    check_page(answer)
    assert 'class="readtrack-panel"' in answer.text


def test_names_of_robots_and_values_of_dimensions_are_short_and_printable(
    text: str, article: Article, admin_client: Client
) -> None:
    visit(text, article)
    for table in ("robots", "by-referrer", "by-country", "by-said"):
        answer: Any = admin_client.get(DASHBOARD, {"table": table, "format": "json"})
        rows = json.loads(b"".join(answer.streaming_content))["rows"]
        assert all(len(name) <= 64 and name.isprintable() for name, *_ in rows)


def test_the_doctor_and_logs_hold_no_control_character_of_it(
    text: str, article: Article, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="readtrack"):
        visit(text, article)
        out = StringIO()
        for options in ((), ("--json",)):
            with suppress(SystemExit):  # it warns of the flush that failed
                call_command("readtrack", "doctor", *options, stdout=out, no_color=True)
    assert not CONTROL.search(out.getvalue()), CONTROL.search(out.getvalue())
    assert len(out.getvalue()) < 20_000
    for record in caplog.records:
        assert not CONTROL.search(record.getMessage())
        assert "\n" not in record.getMessage()


@pytest.mark.django_db(transaction=True)
def test_an_import_prints_a_line_of_a_log_as_text(text: str, tmp_path: Path) -> None:
    factories.post(pk=1)
    written = text.encode(errors="ignore").decode().replace("\n", " ")
    lines = [
        weblogs.line(),
        weblogs.line(f"/{written}/"),
        weblogs.line(after=5, agent=written),
        weblogs.line(after=6, address=written),
        weblogs.line(after=7, method=written),
    ]
    log = weblogs.write(tmp_path / "access.log", lines)
    out = StringIO()
    call_command("readtrack", "import", log, stdout=out, no_color=True)
    assert not CONTROL.search(out.getvalue())
    assert len(out.getvalue()) < 5_000


def test_a_confirmation_in_the_admin_shows_it_as_text(
    text: str, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = factories.post()
    monkeypatch.setattr(Post, "__str__", lambda post: text)
    data = {"action": "reset_counts", "_selected_action": [post.pk]}
    answer = admin_client.post("/admin/site/post/", data)
    form = answer.content.decode()
    assert answer.status_code == 200
    assert not ALIVE.search(form)
