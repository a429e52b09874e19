"""EXCLUDE: views of the site's own people and machines are left out, and their dots go on working."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import AsyncClient
from django.utils import translation
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from readtrack import reports
from readtrack.hits import exclusions
from tests.checks.findings import found, the_message
from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db

ADMIN = "http://testserver/admin/readtrack/dashboard/"


def views(post: Post) -> int:
    return reports.views([post])[post]


def is_kiosk(request: Any) -> bool:
    return "kiosk" in request.GET


def fails(request: Any) -> bool:
    raise RuntimeError


@pytest.mark.parametrize(
    ("rule", "user", "asked", "counts"),
    [
        ({}, {"is_staff": True}, {}, True),
        ({"staff": False}, {"is_staff": True}, {}, True),
        ({"staff": True}, {"is_staff": True}, {}, False),
        ({"staff": True}, {}, {}, True),
        ({"staff": True}, None, {}, True),
        ({"groups": ["editors"]}, {"group": "editors"}, {}, False),
        ({"groups": ["editors", "others"]}, {"group": "writers"}, {}, True),
        ({"groups": ["editors"]}, None, {}, True),
        ({"permissions": ["site.change_post"]}, {"permission": "change_post"}, {}, False),
        ({"permissions": ["site.change_post"]}, {"permission": "view_post"}, {}, True),
        ({"permissions": ["site.change_post"]}, {"is_superuser": True}, {}, False),
        ({"paths": ["^/drafts/"]}, None, {}, True),
        ({"paths": ["^/drafts/", "^/posts/"]}, None, {}, False),
        ({"networks": ["192.0.2.0/24"]}, None, {"REMOTE_ADDR": "192.0.2.7"}, False),
        ({"networks": ["192.0.2.7"]}, None, {"REMOTE_ADDR": "192.0.2.7"}, False),
        ({"networks": ["192.0.2.7"]}, None, {"REMOTE_ADDR": "192.0.2.8"}, True),
        ({"networks": ["2001:db8::7"]}, None, {"REMOTE_ADDR": "2001:db8::7"}, False),
        ({"networks": ["2001:db8::/32"]}, None, {"REMOTE_ADDR": "2001:db8::7"}, False),
        ({"networks": ["2001:db8::/32"]}, None, {"REMOTE_ADDR": "192.0.2.7"}, True),
        ({"networks": ["192.0.2.7"]}, None, {"REMOTE_ADDR": ""}, True),
        ({"function": f"{__name__}.is_kiosk"}, None, {"QUERY_STRING": "kiosk"}, False),
        ({"function": f"{__name__}.is_kiosk"}, None, {}, True),
        ({"staff": True, "groups": ["editors"]}, {"group": "editors"}, {}, False),
    ],
)
def test_views_that_the_site_names_do_not_count(
    settings: Settings,
    rule: dict[str, Any],
    user: dict[str, Any] | None,
    asked: dict[str, Any],
    counts: bool,
) -> None:
    settings.READTRACK = {"EXCLUDE": rule, "DEBUG_HEADER": True}
    post = factories.post()
    response = factories.browser(None if user is None else _user(**user)).get(
        f"/posts/{post.pk}/", **asked
    )
    assert response["X-Readtrack"] == ("counted" if counts else "skipped; reason=excluded")
    assert views(post) == counts
    assert reports.skips().get("excluded", 0) == (not counts)


def _user(*, group: str = "", permission: str = "", **values: Any) -> Any:
    user = factories.user(**values)
    if group:
        user.groups.add(Group.objects.create(name=group))
    user.user_permissions.add(*Permission.objects.filter(codename=permission))
    return user


def test_the_dots_of_whoever_is_left_out_go_on_working(settings: Settings) -> None:
    settings.READTRACK = {"EXCLUDE": {"staff": True}}
    category, user = factories.category(), factories.user(is_staff=True)
    factories.browser(user).get(f"/categories/{category.pk}/")
    assert reports.unread(user, [category]) == set()


@pytest.mark.parametrize("paths", [["^/nothing/", "^/posts/"], ["^/posts/[0-9]+/$"]])
@pytest.mark.parametrize("by_setting", [False, True], ids=["SCRIPT_NAME", "FORCE_SCRIPT_NAME"])
def test_paths_are_those_of_the_urlconf_below_a_script_name_too(
    settings: Settings, paths: list[str], *, by_setting: bool
) -> None:
    post = factories.post()
    server: Any = {}
    if by_setting:
        settings.FORCE_SCRIPT_NAME = "/shop"
    else:
        server = {"SCRIPT_NAME": "/shop"}
    settings.READTRACK = {"EXCLUDE": {"paths": paths}}
    factories.browser().get(f"/posts/{post.pk}/", **server)
    assert views(post) == 0
    settings.READTRACK = {"EXCLUDE": {"paths": ["^/shop/"]}}
    factories.browser().get(f"/posts/{post.pk}/", **server)
    assert views(post) == 1


@pytest.mark.parametrize("rule", [{"function": f"{__name__}.is_kiosk"}, {"staff": True}])
def test_dots_of_whoever_is_left_out_may_stay(settings: Settings, rule: dict[str, Any]) -> None:
    user, category = factories.user(is_staff=True), factories.category()
    page = f"/categories/{category.pk}/?kiosk"
    settings.READTRACK = {"EXCLUDE": {**rule, "reads": True}}
    factories.browser(user).get(page)
    assert reports.unread(user, [category]) == {category}
    settings.READTRACK = {"EXCLUDE": {**rule, "reads": False}}
    factories.browser(user).get(page)
    assert reports.unread(user, [category]) == set()


def test_a_reader_who_is_not_left_out_puts_dots_out_as_before(settings: Settings) -> None:
    user, category = factories.user(), factories.category()
    settings.READTRACK = {"EXCLUDE": {"staff": True, "reads": True}}
    factories.browser(user).get(f"/categories/{category.pk}/?kiosk")
    assert reports.unread(user, [category]) == set()


@pytest.mark.needs_parts("numbers")
def test_no_step_of_a_funnel_counts_for_whoever_is_left_out(settings: Settings) -> None:
    from readtrack.numbers import reports as numbers_reports

    settings.READTRACK = {"EXCLUDE": {"staff": True}, "NUMBERS": {"funnels": True}}
    post = factories.post()
    browser = factories.browser(factories.user(is_staff=True))
    browser.post(f"/posts/{post.pk}/buy/")
    browser.get(f"/posts/{post.pk}/buy/?view&status=200")
    assert {stage.count for stage in numbers_reports.funnel(post)} == {0}


def test_a_robot_is_a_robot_also_where_it_is_left_out(settings: Settings) -> None:
    settings.READTRACK = {"EXCLUDE": {"paths": [""]}, "DEBUG_HEADER": True}
    response = factories.browser().get(
        f"/posts/{factories.post().pk}/", headers={"User-Agent": "curl/8.5.0"}
    )
    assert response["X-Readtrack"] == "skipped; reason=bot"


def test_a_count_in_a_view_leaves_out_its_own_request_as_well(settings: Settings) -> None:
    settings.READTRACK = {"EXCLUDE": {"paths": ["^/posts/"]}}
    post = factories.post()
    assert factories.browser().get(f"/posts/{post.pk}/count/").json() == {"views": [0]}


def test_groups_are_asked_for_in_an_async_page(settings: Settings) -> None:
    settings.READTRACK = {"EXCLUDE": {"groups": ["editors"]}}
    post, browser = factories.post(), AsyncClient()
    browser.force_login(_user(group="editors"))
    factories.fetch_async(browser, f"/posts/{post.pk}/async/")
    assert views(post) == 0


@pytest.mark.parametrize(
    ("referer", "counts"),
    [
        (ADMIN, False),
        ("http://testserver/admin/", False),
        ("http://testserver/list/", True),
        ("http://testserver/nothing/", True),
        ("http://[", True),
        ("", True),
    ],
)
def test_a_link_of_the_admin_is_no_view(settings: Settings, referer: str, counts: bool) -> None:
    settings.READTRACK = {"DEBUG_HEADER": True}
    post = factories.post()
    staff = factories.browser(factories.user(is_staff=True))
    response = staff.get(f"/posts/{post.pk}/", headers={"Referer": referer})
    assert response["X-Readtrack"] == ("counted" if counts else "skipped; reason=excluded")
    assert views(post) == counts


@pytest.mark.parametrize(
    ("referer", "counts"),
    [
        ("http://testserver/de/admin/", False),
        ("http://testserver/admin/", False),
        ("http://testserver/fr/admin/readtrack/dashboard/?period=7#x", False),
        ("http://testserver/de/verwaltung-%C3%BC/", False),
        ("http://testserver/de/nothing/", True),
        ("http://testserver/xx/admin/", True),
    ],
)
@pytest.mark.parametrize("language", ["en", "de", "fr"])
@pytest.mark.urls("tests.hits.urls_in_languages")
def test_a_link_of_the_admin_is_known_in_every_language(
    settings: Settings, referer: str, counts: bool, language: str
) -> None:
    order = settings.MIDDLEWARE
    settings.MIDDLEWARE = [*order[:1], "django.middleware.locale.LocaleMiddleware", *order[1:]]
    settings.READTRACK = {"DEBUG_HEADER": True}
    post = factories.post()
    staff = factories.browser(factories.user(is_staff=True))
    prefix = "" if language == "en" else f"/{language}"
    with translation.override(language):  # ends what the middleware activates
        response = staff.get(f"{prefix}/posts/{post.pk}/", headers={"Referer": referer})
    assert response["X-Readtrack"] == ("counted" if counts else "skipped; reason=excluded")


def test_a_link_of_the_admin_is_known_below_a_script_name() -> None:
    post, staff = factories.post(), factories.browser(factories.user(is_staff=True))
    referer = ADMIN.replace("/admin", "/app/admin")
    staff.get(f"/posts/{post.pk}/", headers={"Referer": referer}, SCRIPT_NAME="/app")
    assert views(post) == 0


def test_only_staff_come_from_the_admin() -> None:
    post = factories.post()
    for user in (None, factories.user()):
        factories.browser(user).get(f"/posts/{post.pk}/", headers={"Referer": ADMIN})
    assert views(post) == 2


def test_a_function_or_a_query_that_fails_leaves_nothing_out_and_is_logged_once(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.READTRACK = {"EXCLUDE": {"function": f"{__name__}.fails"}}
    posts = [factories.post() for _ in range(2)]
    for post in posts:
        assert factories.browser().get(f"/posts/{post.pk}/").status_code == 200
        assert views(post) == 1
    assert [record.getMessage() for record in caplog.records] == ["EXCLUDE failed; the hit counts."]


def test_only_groups_and_permissions_cost_a_query(
    settings: Settings, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    post, staff = factories.post(), factories.browser(_user(is_staff=True, group="editors"))
    rules = [({}, 3), ({"staff": True, "groups": ["editors"]}, 3), ({"groups": ["editors"]}, 4)]
    for rule, queries in rules:  # the session, the user and the post take three
        settings.READTRACK = {"EXCLUDE": rule}
        with django_assert_num_queries(queries):
            staff.get(f"/posts/{post.pk}/")


def test_a_site_that_leaves_out_nothing_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusions, "is_excluded", fails)
    assert (
        factories.browser(factories.user()).get(f"/posts/{factories.post().pk}/").status_code == 200
    )


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"staff": "yes"}, "'staff': 'yes'"),
        ({"staffs": True}, "'staffs': True"),
        ({1: True}, "'1': True"),
        ({"groups": "editors", "paths": "^/x"}, ""),
        ({"groups": [1]}, "'groups': 1"),
        ({"groups": None}, "'groups': None"),
        ({"permissions": ["change_post"]}, "'permissions': 'change_post'"),
        ({"paths": ["("]}, "'paths': '('"),
        ({"paths": [b"x"]}, "'paths': b'x'"),
        ({"networks": ["192.0.2.300"]}, "'networks': '192.0.2.300'"),
        ({"networks": [5]}, "'networks': 5"),
        ({"function": "tests.nowhere.f"}, "'function': 'tests.nowhere.f'"),
        ({"function": f"{__name__}.ADMIN"}, f"'function': '{__name__}.ADMIN'"),
        ({"function": 5}, "'function': 5"),
    ],
)
def test_a_rule_that_cannot_be_used_is_found_and_the_others_hold(
    redis: Redis, settings: Settings, rule: dict[Any, Any], problem: str
) -> None:
    settings.READTRACK = {"EXCLUDE": {"networks": ["127.0.0.1"], **rule}}
    assert ("readtrack.E026" in found()) == bool(problem)
    if problem:
        assert problem in the_message("readtrack.E026").msg
    assert factories.browser().get(f"/posts/{factories.post().pk}/").status_code == 200
    assert bool(redis.keys("views:total:*")) == ("networks" in rule)
