"""A link out of the site counts a stage, and leads only to allowed places."""

import pytest
from django.template import Context, Template
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack import tracker
from readtrack.script.outbound import outbound_url
from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db

TARGET = "https://example.com/shop?a=1&b=ü#x"


@pytest.fixture
def visitor() -> Client:
    return Client(headers={"User-Agent": factories.BROWSER})


def link(post: Post, url: str = TARGET, stage: str = "click") -> str:
    return outbound_url(post, url, stage)


def stages(redis: Redis, post: Post) -> dict[str, str]:
    found: dict[str, str] = redis.hgetall(f"funnel:site.post:{post.pk}")  # type: ignore[assignment]
    return found


def test_following_a_link_counts_once_an_hour_and_leads_on(visitor: Client, redis: Redis) -> None:
    post = factories.post()
    for _ in range(2):
        response = visitor.get(link(post))
        assert response.status_code == 302
        assert response["Location"] == "https://example.com/shop?a=1&b=%C3%BC#x"
    assert stages(redis, post) == {"view": "1", "click": "1"}
    assert "no-store" in response["Cache-Control"]
    assert response["X-Robots-Tag"] == "noindex, nofollow"


def test_the_same_link_is_the_same_text_each_time() -> None:
    post = factories.post()
    assert link(post) == link(post)


@pytest.mark.parametrize(
    "change",
    [lambda path: path[:-2] + "aa", lambda path: path + "x", lambda path: path.split(":")[0]],
)
def test_a_link_without_signature_leads_nowhere(
    visitor: Client, redis: Redis, change: object
) -> None:
    post = factories.post()
    response = visitor.get(change(link(post)))  # type: ignore[operator]
    assert response.status_code == 404
    assert b"not one of ours" in response.content
    assert stages(redis, post) == {}


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "http://[", "\ud800", "https://a.b/" + "x" * 2048],
)
def test_a_target_that_is_no_web_page_is_refused(visitor: Client, url: str) -> None:
    response = visitor.get(link(factories.post(), url))
    assert response.status_code == 400
    assert b"no web page" in response.content


def test_a_page_of_the_site_itself_is_a_target_too(visitor: Client) -> None:
    response = visitor.get(link(factories.post(), "/list/\r\nSet-Cookie: a=b"))
    assert response["Location"] == "/list/%0D%0ASet-Cookie:%20a=b"


@pytest.mark.parametrize(
    ("agent", "method"), [("Googlebot/2.1", "get"), ("", "get"), (factories.BROWSER, "head")]
)
def test_robots_and_head_are_led_on_without_counting(
    visitor: Client, redis: Redis, agent: str, method: str
) -> None:
    post = factories.post()
    response = getattr(visitor, method)(link(post), headers={"User-Agent": agent})
    assert response.status_code == 302
    assert stages(redis, post) == {}


def test_a_post_is_not_answered(visitor: Client) -> None:
    assert visitor.post(link(factories.post())).status_code == 405


def test_a_link_outlives_its_stage(visitor: Client, redis: Redis, settings: object) -> None:
    post = factories.post()
    path = link(post)
    settings.READTRACK = {"NUMBERS": {"funnel": ["view", "buy"]}}  # type: ignore[attr-defined]
    assert visitor.get(path).status_code == 302
    assert stages(redis, post) == {}


def test_a_link_leads_on_without_the_middleware(visitor: Client, settings: object) -> None:
    settings.MIDDLEWARE = []  # type: ignore[attr-defined]
    assert visitor.get(link(factories.post())).status_code == 302


def test_an_unknown_stage_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no stage 'buy'; it has: view, click, convert"):
        link(factories.post(), stage="buy")
    with pytest.raises(ValueError, match="no stage 'buy'"):
        tracker.step(factories.post(), "buy", visitor=factories.hit().visitor)


@pytest.mark.parametrize(
    ("words", "stage"), [("", "click"), (' stage="convert"', "convert"), (' "convert"', "convert")]
)
def test_the_tag_is_the_link_safe_in_an_attribute(words: str, stage: str) -> None:
    post = factories.post()
    template = Template(f'{{% load readtrack %}}<a href="{{% outbound_url post url{words} %}}">')
    assert (
        template.render(Context({"post": post, "url": TARGET}))
        == f'<a href="{link(post, stage=stage)}">'
    )


@pytest.mark.parametrize("post", [None, "", Post()])
def test_the_tag_of_nothing_is_the_plain_target(post: object) -> None:
    template = Template("{% load readtrack %}{% outbound_url post url %}")
    assert (
        template.render(Context({"post": post, "url": "https://a.b/?x=1&y"}))
        == "https://a.b/?x=1&amp;y"
    )
    assert template.render(Context({"post": post, "url": "javascript:alert(1)"})) == ""


@pytest.mark.parametrize(
    "source", ["{% outbound_url post url %}", '{% outbound_url post url "x" %}']
)
def test_without_our_addresses_a_link_leads_on_directly_and_the_log_says_so_once(
    source: str, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"NUMBERS": {"funnel": ["view", "click", "x"]}}
    settings.ROOT_URLCONF = "tests.site.no_urls"
    template = Template("{% load readtrack %}" + source)
    for _ in range(2):
        page = template.render(Context({"post": factories.post(), "url": "https://example.com/"}))
        assert page == "https://example.com/"
    (message,) = caplog.messages
    assert "path('readtrack/', include('readtrack.urls'))" in message
    assert template.render(Context({"post": factories.post(), "url": "javascript:x()"})) == ""


def test_a_link_outlives_a_change_of_the_secret_key(
    visitor: Client, redis: Redis, settings: Settings
) -> None:
    link = outbound_url(factories.post(), "https://example.com/")
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "new"
    assert visitor.get(link)["Location"] == "https://example.com/"
    settings.SECRET_KEY_FALLBACKS = []
    assert visitor.get(link).status_code == 404
