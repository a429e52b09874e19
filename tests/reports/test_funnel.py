"""Steps after a view: how requests take them, and how reports show them."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.hits.visitors import Visitor
from readtrack.numbers import reports as numbers_reports
from readtrack.numbers.reports import Stage
from readtrack.subjects import subject_of
from tests.site.models import Counted, Post
from tests.store.trial_part.apps import TrialConfig
from tests.support import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def visitor() -> Client:
    return Client(headers={"User-Agent": factories.BROWSER})


def funnel(obj: Any) -> list[int]:
    return [stage.count for stage in numbers_reports.funnel(obj)]


def test_a_form_takes_a_step_once_an_hour(visitor: Client) -> None:
    post = factories.post()
    for _ in range(3):
        assert visitor.post(f"/posts/{post.pk}/buy/").status_code == 302
    assert funnel(post) == [1, 1, 1]


def test_a_view_and_a_step_of_one_request_are_one_round_trip_and_one_visitor(
    visitor: Client, settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"NUMBERS": {"funnels": True}}
    post = factories.post()
    visitor.get(f"/posts/{post.pk}/buy/?view=1&stage=click&status=200")
    assert funnel(post) == [1, 1, 0]
    assert redis.get(f"views:total:site.post:{post.pk}") == "1"


def test_a_visitor_goes_through_the_funnel_with_one_cookie(
    visitor: Client, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"funnels": True}}
    post = factories.post()
    visitor.get(f"/posts/{post.pk}/")
    assert funnel(post) == [1, 0, 0]
    visitor.get(f"/posts/{post.pk}/buy/?stage=click")
    visitor.post(f"/posts/{post.pk}/buy/")
    assert funnel(post) == [1, 1, 1]


def test_a_first_step_leaves_the_cookie(visitor: Client) -> None:
    post = factories.post()
    assert "anon_id" in visitor.post(f"/posts/{post.pk}/buy/").cookies
    assert "anon_id" not in visitor.post(f"/posts/{post.pk}/buy/").cookies


@pytest.mark.parametrize(
    ("query", "agent"),
    [("?status=404", factories.BROWSER), ("?status=500", factories.BROWSER), ("", "Googlebot/2.1")],
)
def test_failures_and_robots_take_no_step(redis: Redis, query: str, agent: str) -> None:
    post = factories.post()
    client = Client(headers={"User-Agent": agent}, raise_request_exception=False)
    client.post(f"/posts/{post.pk}/buy/{query}")
    assert redis.keys("funnel:*") == []


def test_a_step_counts_where_its_page_is_no_view(visitor: Client, redis: Redis) -> None:
    post = factories.post()
    visitor.post(f"/posts/{post.pk}/buy/?view=1")
    assert funnel(post) == [1, 1, 1]
    assert not redis.exists(f"views:total:site.post:{post.pk}")


def test_a_stage_that_there_is_not_is_told_in_the_log(
    visitor: Client, caplog: pytest.LogCaptureFixture
) -> None:
    post = factories.post()
    visitor.post(f"/posts/{post.pk}/buy/?stage=fly")
    assert "no stage 'fly'" in caplog.text


def test_a_step_can_be_taken_by_hand() -> None:
    post = factories.post()
    assert tracker.step(post, "click", visitor=Visitor("a")) is True
    assert tracker.step(post, "click", visitor=Visitor("a")) is False
    assert funnel(post) == [1, 1, 0]


def test_a_hit_says_which_steps_were_new() -> None:
    hit = factories.hit(
        steps=(("site.post:1", "click"), ("site.post:2", "click")), visitor=Visitor("a")
    )
    assert tracker.record(hit).steps == hit.steps
    assert tracker.record(hit).steps == ()
    outcome = tracker.record(
        hit._replace(views=("site.post:1",), steps=(("site.post:1", "convert"),))
    )
    assert (outcome.counted, outcome.steps) == (("site.post:1",), (("site.post:1", "convert"),))


def test_a_funnel_has_counts_and_rates_of_one_object_or_of_several(redis: Redis) -> None:
    one, two = Counted.objects.create(), Counted.objects.create()
    redis.hset(
        f"funnel:site.counted:{one.pk}", mapping={"view": 8, "click": 4, "convert": 1, "gone": 3}
    )
    redis.hset(f"funnel:site.counted:{two.pk}", mapping={"view": 2})
    assert numbers_reports.funnel(one) == [
        Stage("view", 8, 1.0, 1.0),
        Stage("click", 4, 0.5, 0.5),
        Stage("convert", 1, 0.125, 0.25),
    ]
    assert numbers_reports.funnel([one, two])[1] == Stage("click", 4, 0.4, 0.4)
    assert numbers_reports.funnel(two)[2] == Stage("convert", 0, 0.0, 0.0)
    assert numbers_reports.funnel([])[0] == Stage("view", 0, 0.0, 0.0)


def test_what_went_on_before_a_stage_was_added_was_at_that_stage(
    redis: Redis, settings: Settings
) -> None:
    settings.READTRACK = {"NUMBERS": {"funnel": ["view", "click", "cart", "convert"]}}
    old, new = Counted.objects.create(), Counted.objects.create()
    redis.hset(f"funnel:site.counted:{old.pk}", mapping={"view": 8, "click": 4, "convert": 2})
    redis.hset(
        f"funnel:site.counted:{new.pk}", mapping={"view": 8, "click": 4, "cart": 3, "convert": 1}
    )
    assert funnel(old) == [8, 4, 2, 2]
    assert funnel([old, new]) == [16, 8, 5, 3]
    assert all(stage.step_rate <= 1 for stage in numbers_reports.funnel([old, new]))


def test_a_stage_of_another_part_is_counted_and_shown(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrialConfig, "stages", lambda config: ("recommend",))
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, TrialConfig.name]
    post = factories.post()
    tracker.step(post, "recommend", visitor=Visitor("a"))
    assert [stage.name for stage in numbers_reports.funnel(post)][-1] == "recommend"
    assert funnel(post) == [1, 1, 1, 1]


def test_where_views_do_not_enter_the_funnel_the_live_count_stands_for_them(redis: Redis) -> None:
    post, counted = factories.post(view_count=3), Counted.objects.create()
    tracker.step(post, "click", visitor=Visitor("a"))
    assert funnel(post) == [3, 1, 0]
    redis.hset(f"funnel:site.counted:{counted.pk}", mapping={"view": 8, "click": 4})
    assert funnel([post, counted]) == [11, 5, 0]


def test_a_site_without_stages_has_an_empty_funnel(settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"funnel": []}}
    assert numbers_reports.funnel(factories.post()) == []


def test_a_page_breaks_its_view_down(visitor: Client, settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["browser", "device", "referrer"]}}
    one, two = factories.post(), factories.post()
    for post in (one, two):
        visitor.get(f"/posts/{post.pk}/", headers={"Referer": "https://example.com/"})
    assert numbers_reports.breakdown(one, "browser") == {"Firefox": 1}
    assert numbers_reports.breakdown([one, two], "referrer") == {"example.com": 2}
    for name in ("os", "browsr"):
        with pytest.raises(ValueError, match=f"no '{name}'; it has: browser, device, referrer"):
            numbers_reports.breakdown(one, name)
    settings.READTRACK = {}
    with pytest.raises(ValueError, match="it has: nothing yet"):
        numbers_reports.breakdown(one, "browser")


def test_a_breakdown_is_in_order(redis: Redis, settings: Settings) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    post = factories.post()
    redis.hset(f"views:device:site.post:{post.pk}", mapping={"b": 1, "phone": 3, "a": 1})
    assert list(numbers_reports.breakdown(post, "device").items()) == [
        ("phone", 3),
        ("a", 1),
        ("b", 1),
    ]


def test_a_visitor_who_opted_out_is_counted_and_not_broken_down(
    visitor: Client, settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["browser"]}}
    post = factories.post()
    visitor.get(f"/posts/{post.pk}/", headers={"Sec-GPC": "1"})
    assert redis.get(f"views:total:site.post:{post.pk}") == "1"
    assert not redis.exists(f"views:browser:site.post:{post.pk}")


def test_the_header_for_developers_names_a_refused_view_and_a_step(
    visitor: Client, settings: Settings
) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}
    post = factories.post()
    response = visitor.post(f"/posts/{post.pk}/buy/?view=1")
    assert response["X-Readtrack"] == "skipped; reason=method, step"


def test_where_anonymous_visitors_are_not_counted_they_take_no_step(
    visitor: Client, settings: Settings, redis: Redis
) -> None:
    settings.READTRACK = {"ANONYMOUS": "none"}
    visitor.post(f"/posts/{factories.post().pk}/buy/")
    assert redis.keys("funnel:*") == []


def test_with_redis_gone_there_is_nothing_and_no_error(settings: Settings, visitor: Client) -> None:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["device"]}}
    settings.CACHES = {
        "default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}
    }
    post = factories.post(view_count=3)
    assert visitor.post(f"/posts/{post.pk}/buy/").status_code == 302
    assert funnel(post) == [3, 0, 0]
    assert numbers_reports.breakdown(post, "device") == {}
    assert reports.trending() == []


def test_trending_takes_a_model(noon: Any) -> None:
    post, other = factories.post(), factories.post()
    counted = Counted.objects.create()
    for obj, minute in ((post, 0), (post, 0), (post, 0), (other, 20), (other, 20), (counted, 20)):
        at = noon.replace(minute=minute)
        tracker.record(factories.hit(subject_of(obj), at=at))
    at = noon.replace(minute=20)
    assert [(trend.obj, trend.views) for trend in reports.trending(at=at)] == [
        (post, 3),
        (other, 2),
        (counted, 1),
    ]
    assert [trend.obj for trend in reports.trending(model=Counted, at=at)] == [counted]
    assert [trend.obj for trend in reports.trending(model=Post, at=at)] == [post, other]
