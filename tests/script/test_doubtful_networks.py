"""A view from a doubtful network is seen only with signs of a person."""

from typing import Any

import pytest
from pytest_django import Settings

from readtrack.networks import lookup
from readtrack.numbers import reports as numbers_reports
from tests.script.test_reading import Tab
from tests.site.models import Post
from tests.support import buffered, factories

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.script.test_reading"),
    pytest.mark.usefixtures("_both_ways"),
]

DOUBTFUL = "198.51.100.7"
OTHER = "203.0.113.7"


@pytest.fixture(autouse=True)
def _networks(settings: Settings) -> None:
    settings.READTRACK = {"NETWORKS": {"doubtful": ["198.51.100.0/24"]}}
    lookup.files().read()


def tab_at(address: str, post: Post, **options: Any) -> Tab:
    return Tab(post, browser=factories.browser(REMOTE_ADDR=address), **options)


def stages(post: Post) -> tuple[int, int, int, int]:
    found = numbers_reports.reading(post)
    return found.views, found.seen, found.engaged, found.reads


@pytest.mark.parametrize("kind", ["text", "shared"])
def test_to_come_to_life_is_not_enough(post: Post, kind: str) -> None:
    tab = tab_at(DOUBTFUL, post, kind=kind)
    for _ in range(3):
        tab.tell()
    assert stages(post) == (1, 0, 0, 0)
    other_tab = tab_at(OTHER, post, kind=kind)
    for _ in range(2):
        other_tab.tell()
    assert stages(post) == (2, 1, 0, 0)


@pytest.mark.parametrize("kind", ["text", "shared"])
def test_an_engaged_view_is_seen(post: Post, kind: str) -> None:
    tab = tab_at(DOUBTFUL, post, kind=kind)
    for state in ("", "", "8 0", "8 0"):
        tab.tell(state)
    assert stages(post) == (1, 1, 1, 0)
    tab.tell("60 1")
    assert stages(post) == (1, 1, 1, 1)


@pytest.mark.parametrize("count_by", ["script", "server"])
def test_it_holds_whoever_counts(post: Post, settings: Settings, count_by: str) -> None:
    settings.READTRACK = {**settings.READTRACK, "SCRIPT": {"count_by": count_by}}
    lookup.files().read()
    tab = tab_at(DOUBTFUL, post)
    tab.tell()
    tab.tell()
    assert stages(post)[:2] == (1, 0)
    tab.tell("8 0")
    assert stages(post)[:2] == (1, 1)


def test_it_holds_for_views_that_wait(post: Post, settings: Settings) -> None:
    settings.READTRACK = {**settings.READTRACK, "BUFFER": {"seconds": 3600}}
    lookup.files().read()
    for address in (DOUBTFUL, OTHER):
        tab_at(address, post).tell()
    buffered.send()
    assert stages(post)[:2] == (2, 1)


def test_a_user_who_is_signed_in_is_not_doubted(post: Post) -> None:
    browser = factories.browser(factories.user(), REMOTE_ADDR=DOUBTFUL)
    Tab(post, browser=browser).tell()
    assert stages(post)[:2] == (1, 1)


def test_without_the_setting_the_view_is_seen(post: Post, settings: Settings) -> None:
    settings.READTRACK = {}
    tab = tab_at(DOUBTFUL, post)
    tab.tell()
    tab.tell()
    assert stages(post)[:2] == (1, 1)
