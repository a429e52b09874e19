"""What a reader opens is kept, without a further round trip, as long and as much as RECENT says."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import modify_settings
from pytest_django import Settings
from redis import Redis

from readtrack import buckets, tracker
from readtrack.cluster import repartitioning
from readtrack.hits.hit import Hit
from readtrack.hits.visitors import Visitor, user_id
from readtrack.recent import keys as rows
from readtrack.recent.openings import id_of
from readtrack.recent.reports import recently_viewed
from readtrack.renames import follow, rename_model, rename_subject
from readtrack.store import clock, keys
from readtrack.subjects import subject_of
from tests.recent.conftest import Keep, opened, posts, signed_in
from tests.site.models import Post, Product
from tests.support import buffered, factories
from tests.support.wire import Wire

pytestmark = pytest.mark.django_db


def lists(redis: Redis) -> list[str]:
    return [str(name) for name in redis.keys("recent:*")]


@pytest.mark.usefixtures("keep")
def test_the_last_one_is_first_and_a_repeat_moves_to_the_front(redis: Redis) -> None:
    user, browser = signed_in()
    first, second = posts(2)
    for post in (first, second, first):
        browser.get(f"/posts/{post.pk}/plain/")
    assert recently_viewed(user) == [first, second]
    assert redis.get(f"views:total:{subject_of(first)}") == "1"  # a repeat does not count


@pytest.mark.usefixtures("keep")
def test_each_reader_has_a_list_and_each_object_the_time() -> None:
    began = buckets.now()
    (ann, by_ann), (bob, by_bob) = signed_in(), signed_in()
    first, second = posts(2)
    by_ann.get(f"/posts/{first.pk}/plain/")
    by_bob.get(f"/posts/{second.pk}/plain/")
    assert (recently_viewed(ann), recently_viewed(bob)) == ([first], [second])
    [found] = recently_viewed(ann)
    assert began - timedelta(seconds=2) <= found.opened_at <= buckets.now() + timedelta(seconds=2)


@pytest.mark.parametrize("options", [{}, {"visitors": True}], ids=str)
def test_a_page_that_keeps_it_takes_one_round_trip(
    keep: Keep, wire: Wire, options: dict[str, Any]
) -> None:
    keep(**options)
    user, browser = signed_in()
    first, second = posts(2)
    browser.get(f"/posts/{first.pk}/plain/")
    with wire.counted() as trips:
        browser.get(f"/posts/{second.pk}/plain/")
    assert trips == [1]
    assert recently_viewed(user) == [second, first]


def test_only_the_models_of_the_setting_are_kept(keep: Keep) -> None:
    user, browser = signed_in()
    product = Product.objects.create(id=uuid.uuid4())
    browser.get(f"/products/{product.pk}/")
    assert recently_viewed(user) == []
    keep(models=["site.Product", "site.Headline"])  # a proxy of posts
    [post] = posts(1)
    browser.get(f"/products/{product.pk}/")
    browser.get(f"/posts/{post.pk}/plain/")
    assert recently_viewed(user) == [post, product]
    assert recently_viewed(user, model=Product) == [product]
    keep(models=["site.Post"])
    assert recently_viewed(user) == [post]


def test_a_list_has_a_limited_number_and_expires(keep: Keep, redis: Redis) -> None:
    keep(kept=3, days=2)
    user, browser = signed_in()
    five = posts(5)
    for post in five:
        browser.get(f"/posts/{post.pk}/plain/")
    assert recently_viewed(user) == [*reversed(five[2:])]
    [name] = lists(redis)
    assert redis.zcard(name) == 3
    assert 2 * keys.DAY - 60 < redis.ttl(name) <= 2 * keys.DAY


def test_what_is_too_old_goes_while_the_reader_stays(keep: Keep, redis: Redis) -> None:
    keep(days=2)
    visitor = Visitor("u", kind="user")
    for days, subject in ((3, "site.post:1"), (1, "site.post:2")):
        at = clock.now() - timedelta(days=days)
        tracker.record(Hit(visitor, at, views=(subject,)))
    assert opened("u") == ["site.post:2"]
    tracker.record(Hit(visitor, clock.now(), views=("site.post:3",)))
    assert redis.zrange(rows.recent("u"), 0, -1) == ["site.post:2", "site.post:3"]


@pytest.mark.usefixtures("keep")
def test_a_hit_that_comes_late_leaves_the_list_in_order() -> None:
    visitor = Visitor("u", kind="user")
    now = clock.now()
    for seconds, subject in ((9, "site.post:1"), (5, "site.post:2"), (7, "site.post:2")):
        tracker.record(Hit(visitor, now - timedelta(seconds=seconds), views=(subject,)))
    assert opened("u") == ["site.post:2", "site.post:1"]


def test_visitors_have_a_list_only_if_the_setting_says_so_and_the_cookie_came_back(
    keep: Keep, redis: Redis
) -> None:
    browser = factories.browser()
    first, second, third = posts(3)
    browser.get(f"/posts/{first.pk}/plain/")  # gets the cookie
    browser.get(f"/posts/{first.pk}/plain/")
    assert lists(redis) == []
    keep(visitors=True)
    factories.browser().get(f"/posts/{first.pk}/plain/")
    assert lists(redis) == []
    browser.get(f"/posts/{second.pk}/plain/")
    browser.get(f"/posts/{third.pk}/plain/")
    assert len(lists(redis)) == 1
    assert browser.get("/list/").text == "Post 3,Post 2,"
    keep(visitors=False)
    assert browser.get("/list/").text == ""


@pytest.mark.parametrize(
    ("headers", "others"),
    [
        ({"Sec-GPC": "1"}, {}),
        ({"DNT": "1"}, {}),
        ({}, {"ANONYMOUS": "hash"}),
        ({}, {"COOKIE": {"consent": "tests.recent.test_openings.never"}}),
        ({"User-Agent": "Googlebot/2.1 (+http://www.google.com/bot.html)"}, {}),
    ],
    ids=str,
)
def test_who_opted_out_and_hashes_and_robots_have_none(
    keep: Keep, redis: Redis, headers: dict[str, str], others: dict[str, Any]
) -> None:
    keep(visitors=True)
    browser = factories.browser()
    [post] = posts(1)
    browser.get(f"/posts/{post.pk}/plain/")
    keep(others, visitors=True)
    for _ in range(2):
        browser.get(f"/posts/{post.pk}/plain/", headers=headers)
    assert lists(redis) == []


def never(request: Any) -> bool:
    return False


@pytest.mark.usefixtures("keep")
def test_a_user_who_opts_out_is_not_followed_and_sees_nothing(redis: Redis) -> None:
    _, browser = signed_in()
    first, second = posts(2)
    browser.get(f"/posts/{first.pk}/plain/", headers={"Sec-GPC": "1"})
    assert lists(redis) == []
    browser.get(f"/posts/{second.pk}/plain/")
    assert browser.get("/list/").text == "Post 2,"
    assert browser.get("/list/", headers={"Sec-GPC": "1"}).text == ""


def test_the_sites_own_setting_honours_no_opt_out(keep: Keep) -> None:
    keep({"HONOUR_OPT_OUT": False})
    user, browser = signed_in()
    [post] = posts(1)
    browser.get(f"/posts/{post.pk}/plain/", headers={"DNT": "1"})
    assert recently_viewed(user) == [post]


def test_excluded_and_refused_hits_are_not_kept(keep: Keep, redis: Redis) -> None:
    keep({"EXCLUDE": {"staff": True}})
    staff = factories.browser(factories.user(is_staff=True))
    _, browser = signed_in()
    [post] = posts(1)
    staff.get(f"/posts/{post.pk}/plain/")
    browser.head(f"/posts/{post.pk}/plain/")
    browser.get(f"/posts/{post.pk}/plain/", headers={"Purpose": "prefetch"})
    assert lists(redis) == []


@pytest.mark.parametrize("kind", ["hash", "day", "address"])
def test_a_visitor_without_a_cookie_has_no_id_for_a_list(keep: Keep, kind: Any) -> None:
    keep(visitors=True)
    assert id_of(Visitor("v", kind=kind)) == ""
    assert id_of(Visitor("v", new_cookie="new")) == ""
    assert id_of(Visitor("v")) == "v"


@pytest.mark.parametrize("partitions", [1, 16])
@pytest.mark.one_server("sets the number of partitions itself")
def test_hits_that_wait_in_a_buffer_are_kept_in_their_order(
    keep: Keep, redis: Redis, partitions: int
) -> None:
    keep({"BUFFER": {"seconds": 1}, "CLUSTER": {"partitions": partitions}}, visitors=True)
    user, browser = signed_in()
    quiet, by_quiet = signed_in()
    first, second, third = posts(3)
    for post in (first, second, third, second):
        browser.get(f"/posts/{post.pk}/plain/")
        by_quiet.get(f"/posts/{post.pk}/plain/", headers={"Sec-GPC": "1"})
    buffered.send()
    assert recently_viewed(user) == [second, third, first]
    assert recently_viewed(quiet) == []
    assert len(lists(redis)) == 1


@pytest.mark.usefixtures("keep")
def test_it_is_erased_with_the_user(redis: Redis) -> None:
    (ann, by_ann), (bob, by_bob) = signed_in(), signed_in()
    [post] = posts(1)
    by_ann.get(f"/posts/{post.pk}/plain/")
    by_bob.get(f"/posts/{post.pk}/plain/")
    tracker.erase(ann.pk, is_dry_run=True)
    assert recently_viewed(ann) == [post]
    assert tracker.erase(ann.pk).keys == 3  # the list, the window of the view, and the rate
    assert (recently_viewed(ann), recently_viewed(bob)) == ([], [post])


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("keep")
def test_a_later_user_with_the_same_key_inherits_nothing(redis: Redis) -> None:
    user, browser = signed_in()
    [post] = posts(1)
    browser.get(f"/posts/{post.pk}/plain/")
    assert len(lists(redis)) == 1
    user.delete()
    assert lists(redis) == []


@pytest.mark.usefixtures("keep")
def test_deleted_objects_are_left_out() -> None:
    user, browser = signed_in()
    first, second, third = posts(3)
    for post in (first, second, third):
        browser.get(f"/posts/{post.pk}/plain/")
    third.delete()
    assert recently_viewed(user, limit=1) == [second]
    assert recently_viewed(user, besides=[second]) == [first]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_of_model", [True, False])
def test_lists_follow_a_new_name(keep: Keep, redis: Redis, *, is_of_model: bool) -> None:
    tracker.record(Hit(Visitor("u", kind="user"), clock.now(), views=("site.post:7",)))
    tracker.record(Hit(Visitor("v", kind="user"), clock.now(), views=("site.post:8",)))
    lifetime = redis.ttl(rows.recent("u"))
    if is_of_model:
        rename_model("site.post", "site.story", pks=[7, 8], using=None)
    else:
        rename_subject("site.post:7", "site.story:7", using=None)
    follow()
    assert redis.zrange(rows.recent("u"), 0, -1) == ["site.story:7"]
    assert redis.zrange(rows.recent("v"), 0, -1) == [
        "site.story:8" if is_of_model else "site.post:8"
    ]
    assert 0 < redis.ttl(rows.recent("u")) <= lifetime


@pytest.mark.one_server("begins without partitions, which a cluster refuses")
def test_a_list_moves_as_a_whole_to_the_partition_of_its_reader(keep: Keep, redis: Redis) -> None:
    keep({"CLUSTER": {"partitions": 1}})
    subjects = [f"site.post:{number}" for number in range(1, 9)]
    for subject in subjects:
        tracker.record(Hit(Visitor("u", kind="user"), clock.now(), views=(subject,)))
    before = opened("u")
    keep({"CLUSTER": {"partitions": 16}})
    repartitioning.move(1)
    assert sorted(before) == subjects
    assert opened("u") == before
    assert lists(redis) == [rows.recent("u")]


@pytest.mark.parametrize("setting", [{}, {"RECENT": {}}, {"RECENT": {"models": []}}], ids=str)
def test_without_models_nothing_is_kept(
    settings: Settings, redis: Redis, setting: dict[str, Any]
) -> None:
    settings.ROOT_URLCONF = "tests.recent.urls"
    settings.READTRACK = setting
    user, browser = signed_in()
    [post] = posts(1)
    browser.get(f"/posts/{post.pk}/plain/")
    assert lists(redis) == []
    assert recently_viewed(user) == []


@pytest.mark.usefixtures("keep")
def test_a_site_without_the_part_has_none_of_its_keys(redis: Redis) -> None:
    _, browser = signed_in()
    [post] = posts(1)
    with modify_settings(INSTALLED_APPS={"remove": "readtrack.recent"}):
        browser.get(f"/posts/{post.pk}/plain/")
        assert lists(redis) == []
        assert rows.recent not in keys.every()


@pytest.mark.usefixtures("keep")
def test_redis_that_is_gone_leaves_a_page_whole(wire: Wire) -> None:
    user, browser = signed_in()
    [post] = posts(1)
    browser.get(f"/posts/{post.pk}/plain/")
    wire.cut()
    assert browser.get(f"/posts/{post.pk}/").status_code == 200
    assert recently_viewed(user) == []
    user.delete()


@pytest.mark.usefixtures("keep")
def test_what_an_app_records_is_opened(django_assert_num_queries: Any) -> None:
    user = factories.user()
    first, second = posts(2)
    for post in (first, second):
        tracker.view(post, visitor=Visitor(user_id(user.pk), kind="user"))
    with django_assert_num_queries(1):
        assert {*recently_viewed(user)} == {first, second}


@pytest.mark.usefixtures("keep")
def test_the_user_has_to_be_one_of_the_site() -> None:
    assert recently_viewed(None) == []
    with pytest.raises(TypeError, match="user model of this site"):
        recently_viewed(Post())
