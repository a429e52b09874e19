"""A setting DIGEST that sends nothing, or mails that nobody can use, is found."""

from typing import Any

from pytest_django import Settings

from tests.checks.findings import found, the_message
from tests.support import digests
from tests.support.rows import each_row

HERE = "tests.digest.test_sending"


@each_row(
    ("changes", "part"),
    [
        ({}, ""),
        ({"every": "day"}, ""),
        ({"site": "http://localhost:8000/"}, ""),
        ({"users": f"{HERE}.chiefs", "locale": f"{HERE}.shanghai"}, ""),
        ({"every": "month"}, "'every' is 'month'"),
        ({"every": ["week"]}, "'every' is ['week']"),
        ({"site": ""}, "'site' is ''"),
        ({"site": "example.com"}, "'site' is 'example.com'"),
        ({"site": "https://example.com/news/"}, ""),
        ({"site": "https://example.com/?x"}, "'site' is"),
        ({"site": "https://a:b@example.com"}, "'site' is"),
        ({"site": "https://example.com:x"}, "'site' is"),
        ({"site": "javascript:alert(1)"}, "'site' is"),
        ({"site": None}, "'site' is"),
        ({"authors": "yes"}, "'authors' is neither"),
        ({"from": "a@example.com\nBcc: b@example.com"}, "'from' is"),
        ({"from": 5}, "'from' is 5"),
        ({"name": 5}, "'name' is 5"),
        ({"name": "Two\nlines"}, "'name' is"),
        ({"users": "nowhere.users"}, "'users' names 'nowhere.users'"),
        ({"locale": 5}, "'locale' names 5"),
        ({"evry": "week"}, "no key 'evry'"),
    ],
)
def test_a_value_that_cannot_be_used_is_found(
    changes: dict[str, Any], part: str, settings: Settings
) -> None:
    settings.READTRACK = {"DIGEST": {**digests.DIGEST, **changes}}
    assert found() == (["readtrack.E081"] if part else [])
    if part:
        assert part in the_message("readtrack.E081").msg


def test_without_history_there_are_no_numbers_of_a_week(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST, "NUMBERS": {"history": False}}
    assert found() == ["readtrack.E082"]


def test_readers_need_an_address_to_stop_it(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST}
    settings.ROOT_URLCONF = "tests.site.no_urls"
    assert found() == ["readtrack.W083"]
    settings.READTRACK = {}
    assert found() == []


def test_a_sender_that_mail_servers_refuse_is_found(settings: Settings) -> None:
    options = {"site": digests.SITE}
    settings.READTRACK = {"DIGEST": options}
    assert found() == ["readtrack.W084"]
    settings.DEFAULT_FROM_EMAIL = "numbers@example.com"
    assert found() == []


def test_authors_get_none_where_a_rule_decides_about_single_objects(settings: Settings) -> None:
    settings.READTRACK = {"DIGEST": digests.DIGEST, "VIEW_NUMBERS": f"{HERE}.rule"}
    assert found() == ["readtrack.W085"]
