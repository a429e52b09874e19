"""The mail: text and HTML in the language of its reader, without anything that tells on them."""

import re
from datetime import timezone
from email import message_from_bytes, policy
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from readtrack import buckets
from readtrack.digest.contents import contents_of
from readtrack.digest.mail import Letter, letter
from readtrack.digest.readers import Reader, reader_of
from readtrack.numbers.models import DayBreakdown
from readtrack.subjects import subject_of
from tests.site.models import Article, Category
from tests.support import digests

pytestmark = pytest.mark.django_db
LANGUAGES = ("en", "de", "es", "fr", "ja", "pt-br", "ar")
HOSTILE = (
    "\r\nBcc: all@example.com\r\n\r\n<script>alert(1)</script>",
    "</bdi></td></table><img src=//evil.example/x>",
    "{{ settings.SECRET_KEY }}{% load x %}",
    "\u202egnp.txt\u2066 \x00\x1b[31m \u2028 end",
    "&lt;b&gt; \"quoted\" 'single'",
    "x" * 5_000,
)


@pytest.fixture(autouse=True)
def _digest(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST}


@pytest.fixture(autouse=True)
def _titles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets articles be called by their titles."""
    monkeypatch.setattr(Article, "__str__", lambda article: article.title)


def mail_to(user: User, **locale: Any) -> Letter:
    reader = reader_of(user)
    assert reader is not None
    reader = Reader(
        user=user,
        author=reader.author,
        language=locale.get("language", "en"),
        zone=locale.get("zone", timezone.utc),
    )
    return letter(contents_of(digests.week(), author=reader.author), reader)


def html_of(mail: Letter) -> str:
    [alternative] = mail.alternatives
    assert alternative[1] == "text/html"
    return str(alternative[0])


def sent(mail: Letter) -> Any:
    """Returns the mail as its receiver parses it."""
    data = mail.message().as_bytes()
    return message_from_bytes(data, policy=policy.default)


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))


def test_it_has_the_numbers_and_the_stories_in_text_and_in_html() -> None:
    digests.articles(
        {"views": 1200, "before": 1000, "reads": 300, "title": "Grown"},
        {"views": 1, "before": 500, "title": "Fallen"},
    )
    mail = mail_to(digests.editor())
    assert mail.subject.startswith("news.example.com: 1,201 views, ")
    assert "\n" not in mail.subject
    assert "Views: 1,201 (Before: 1,500, \N{MINUS SIGN}20%)" in mail.body
    assert "Reads: 300" in mail.body
    said = (
        "A quiet week. There were 1,201 views, 20% fewer than before. 99% of all views went to"
        " one story: Grown."
    )
    assert said in str(mail.body)
    assert re.search(r"Grew most \(More views\)\n\n\+200  Grown\n", str(mail.body))
    html = html_of(mail)
    for text in ("1,201", "1,500", "\N{MINUS SIGN}20%", "Grown", "Fallen", "+200"):
        assert text in html
    message = sent(mail)
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]


def test_it_says_why_a_story_grew(settings: Settings) -> None:
    numbers = {"dimensions": ["referrer"]}
    settings.READTRACK = {"DIGEST": digests.DIGEST, "NUMBERS": numbers}
    grown = digests.article(1_200, before=300, title="Grown")
    day = digests.week().first_day + buckets.DAY
    for site, age, count in (
        ("news.example", 0, 950),
        ("direct", 0, 250),
        ("news.example", 7, 150),
        ("direct", 7, 150),
    ):
        DayBreakdown.objects.create(
            subject=subject_of(grown),
            kind="views:referrer",
            day=day - age * buckets.DAY,
            field=site,
            count=count,
        )
    mail = mail_to(digests.editor())
    sentence = "Of 900 views more than before, 800 came from one source: news.example."
    assert f"+900  Grown\n    {sentence}\n" in str(mail.body)
    assert sentence in html_of(mail)


def test_an_author_gets_only_the_numbers_of_their_own_articles() -> None:
    ann = digests.author(first_name="Ann")
    digests.articles(
        {"views": 7, "before": 3, "title": "Of Ann", "author": ann},
        {"views": 900, "title": "Of another"},
    )
    mail = mail_to(ann)
    assert mail.to == [ann.email]
    assert mail.body.startswith("Numbers of Ann\n")
    assert ": 7 views, " in mail.subject
    for text in (mail.body, html_of(mail)):
        assert "Of Ann" in text
        assert "Of another" not in text
        assert "900" not in text
        assert "Robots" not in text


@pytest.mark.parametrize("title", HOSTILE, ids=range(len(HOSTILE)))
def test_no_title_breaks_out_of_its_place(title: str) -> None:
    ann = digests.author(first_name=title[:100].replace("\x00", ""))
    article = digests.article(5, title="x", author=ann)
    Article.objects.filter(pk=article.pk).update(title=title[:100].replace("\x00", ""))
    for user in (digests.editor(), ann):
        mail = mail_to(user)
        message = sent(mail)
        assert set(message.keys()) == {
            "Content-Type",
            "MIME-Version",
            "Subject",
            "From",
            "To",
            "Date",
            "Message-ID",
            "Auto-Submitted",
            "List-Unsubscribe",
            "List-Unsubscribe-Post",
        }
        assert message["To"] == user.email
        for character in "\x00\x1b\u2028\u202e\u2066\r":
            assert character not in mail.body + html_of(mail)
        elements = {tag for tag, _ in Elements(html_of(mail)).found}
        assert not elements & {"script", "img", "b"}
        assert max(map(len, mail.body.splitlines())) < 400


def test_a_long_title_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    digests.article(5)
    monkeypatch.setattr(Article, "__str__", lambda article: "x" * 5_000)
    body = mail_to(digests.editor()).body
    assert "x" * 200 + "…" in body
    assert "x" * 201 not in body


def test_nothing_is_loaded_and_nothing_tells_that_it_was_read() -> None:
    digests.articles({"views": 5, "before": 2, "title": "A"})
    for tag, attributes in Elements(html_of(mail_to(digests.editor()))).found:
        assert tag not in {"img", "script", "link", "iframe", "style", "object", "form", "video"}
        assert not attributes.keys() & {"src", "srcset", "background", "onload"}
        assert "url(" not in attributes.get("style", "")
        if tag == "a":
            assert attributes["href"].startswith(f"{digests.SITE}/")


def test_staff_get_links_to_numbers_and_others_to_the_stories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Article, "get_absolute_url", lambda article: "/a b\n/", raising=False)
    ann = digests.author()
    digests.article(5, title="A", author=ann)
    days = "from=" + digests.week().first_day.isoformat()
    body = mail_to(digests.editor()).body
    assert f"{digests.SITE}/admin/readtrack/dashboard/object/site.article:" in body
    assert f"{digests.SITE}/admin/readtrack/dashboard/?{days}" in body
    body = mail_to(ann).body
    assert f"    {digests.SITE}/a%20b" in body
    assert "/admin/" not in body
    ann.is_staff = True
    assert f"{digests.SITE}/admin/readtrack/dashboard/author/?{days}" in mail_to(ann).body


def test_an_address_that_is_no_web_page_gives_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Article, "get_absolute_url", lambda article: "javascript:alert(1)", raising=False
    )
    ann = digests.author()
    digests.article(5, title="A", author=ann)
    assert "javascript" not in mail_to(ann).body + html_of(mail_to(ann))


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_in_the_language_of_its_reader(language: str) -> None:
    digests.articles({"views": 1200, "before": 1000, "title": "A"})
    mail = mail_to(digests.editor(), language=language)
    [(_, page), *_] = Elements(html_of(mail)).found[:1]
    assert page == {"lang": language, "dir": "rtl" if language == "ar" else "ltr"}
    english = ("Stop these mails", "You get this mail", "Top stories", "Numbers of", "views,")
    for text in english:
        is_there = text in f"{mail.subject}{mail.body}{html_of(mail)}"
        assert is_there == (language == "en"), text


def test_in_an_empty_week_it_says_so_and_nothing_else() -> None:
    digests.articles({"views": 0, "before": 5, "title": "A"})
    mail = mail_to(digests.editor())
    assert "No views in this period. You get no further mail" in mail.body
    assert "No views in this period." in html_of(mail)
    assert "Grew most" not in mail.body
    assert ": 0 views, " in mail.subject


def test_mail_programs_can_stop_it_with_one_click() -> None:
    digests.article(5)
    message = sent(mail_to(digests.editor()))
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert re.fullmatch(
        rf"<{digests.SITE}/readtrack/digest/[^<>\s]{{40,}}/>", message["List-Unsubscribe"].strip()
    )


def test_the_site_is_called_by_its_name_or_by_its_host(settings: Settings) -> None:
    digests.article(5)
    editor = digests.editor()
    assert mail_to(editor).subject.startswith("news.example.com: ")
    settings.READTRACK = {"DIGEST": {**digests.DIGEST, "name": "The <Example>"}}
    mail = mail_to(editor)
    assert mail.subject.startswith("The <Example>: 5 views")
    assert mail.body.startswith("Numbers of The <Example>")
    assert "Numbers of The &lt;Example&gt;" in html_of(mail)


def test_a_long_address_to_stop_stays_in_one_word(settings: Settings) -> None:
    host = f"https://{'long-name.' * 20}example.com"
    settings.READTRACK = {"DIGEST": {"site": host, "from": "a@example.com"}}
    digests.article(5)
    data = mail_to(digests.editor()).message().as_bytes()
    assert re.search(rb"\nList-Unsubscribe:\s+<%b/readtrack/digest/\S+>\n" % host.encode(), data)


def test_a_site_without_the_address_sends_no_link_to_stop(settings: Settings) -> None:
    digests.article(5)
    editor = digests.editor()
    settings.ROOT_URLCONF = "tests.site.no_urls"
    mail = mail_to(editor)
    assert "List-Unsubscribe" not in sent(mail)
    assert "Stop these mails" not in mail.body + html_of(mail)
    assert "Dashboard" not in mail.body  # there is no admin


def test_the_address_of_a_user_cannot_add_a_header() -> None:
    digests.article(5)
    editor = digests.editor()
    editor.email = "a@example.com\nBcc: b@example.com"
    with pytest.raises(ValueError, match=r"newline|[Hh]eader"):
        mail_to(editor).message()


def test_articles_of_a_category_need_no_query_each(
    django_assert_max_num_queries: Any,
) -> None:
    section = Category.objects.create(name="Sport")
    digests.articles(*[{"views": 5 + number, "category": section} for number in range(8)])
    reader = digests.reader(digests.editor())
    contents = contents_of(digests.week())
    with django_assert_max_num_queries(0):
        letter(contents, reader)
