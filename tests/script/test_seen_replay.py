"""A replay: a few real browsers beside many disguised robots, which send Chrome's name and run no
script.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from django.http import HttpResponse
from django.template import engines
from django.test import Client
from django.urls import path
from pytest_django import Settings

from readtrack.flush.run import flush
from readtrack.numbers import reports as numbers_reports
from tests.site.models import Post
from tests.site.urls import urlpatterns as site_urls
from tests.support import factories
from tests.support.depth import DEEP

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls(__name__),
]

OWN = {"Sec-Fetch-Site": "same-origin"}
TEMPLATE = "{% load readtrack %}<p>text</p>{% readtrack_script %}"
PEOPLE = 10
# Each person views each post once, in a window of WINDOW, so all pages are different objects.
PAGES = min(1_000, 100 * DEEP) or 30  # of each person; READTRACK_DEEP=10 replays all of them
ROBOT_HITS = min(100_000, 10_000 * DEEP) or 600
POSTS = max(60, PAGES)


@cache
def template() -> Any:
    return engines["django"].from_string(TEMPLATE)


def page(request: Any, pk: int) -> HttpResponse:
    request.readtrack.view(Post(pk=pk))
    return HttpResponse(template().render({}, request))


urlpatterns = [*site_urls, path("replay/<int:pk>/", page)]


def test_what_people_see_is_counted_within_one_per_cent_beside_disguised_robots(
    settings: Settings,
) -> None:
    settings.READTRACK = {"NUMBERS": {"rank_by": "seen"}, "RATE": (0, 10), "TIMEOUT": 10}
    chance = random.Random(1)
    category = factories.category()
    pks = [factories.post(category=category).pk for _ in range(POSTS)]
    truth: Counter[int] = Counter()
    acts = [*_visits_of_people(pks, truth, chance), *[None] * ROBOT_HITS]
    chance.shuffle(acts)
    robot = factories.browser()
    browsers = [_browser(number) for number in range(PEOPLE)]
    # Robots go for a few objects, which would lead every ranking by views.
    favourites = chance.sample(pks, 5)
    for number, act in enumerate(acts):
        if act is None:
            _hit_by_robot(robot, number, chance.choice(favourites))
        else:
            person, pk = act
            _visit(browsers[person], pk)
    flush()
    found = numbers_reports.reading(Post.objects.all())
    visits = sum(truth.values())
    assert abs(found.seen - visits) <= visits / 100
    assert found.views > found.seen
    top = [pk for pk, _number in sorted(truth.items(), key=lambda item: (-item[1], str(item[0])))]
    best = numbers_reports.most_viewed(Post, 10, days=2)
    assert [truth[post.pk] for post in best] == [truth[pk] for pk in top[:10]]
    by_views = numbers_reports.most_viewed(Post, 5, days=2, by="views")
    assert {post.pk for post in by_views} == {*favourites}


def _visits_of_people(
    pks: list[int], truth: Counter[int], chance: random.Random
) -> Iterator[tuple[int, int]]:
    """Yields who visits which post. The truth gets the visits: some posts have far more."""
    for person in range(PEOPLE):
        # Person 3 leaves out more posts than person 2, so that the first posts are in front.
        number = min(PAGES, len(pks) - person * len(pks) // (2 * PEOPLE))
        for pk in chance.sample(pks[: max(number, 10)], k=min(PAGES, max(number, 10))):
            truth[pk] += 1
            yield person, pk


def _browser(number: int) -> Client:
    return factories.browser(REMOTE_ADDR=f"192.0.2.{number + 1}")


def _visit(browser: Client, pk: int) -> None:
    """Opens the page, and sends what script.js sends, also the second report if it is asked for."""
    html = browser.get(f"/replay/{pk}/", headers={"Sec-Fetch-Dest": "document"}).text
    [token] = re.findall(r'data-page="([^"]*)"', html)
    for _ in range(2):
        answer = browser.post("/readtrack/page.js", f"{token}\n\n\n250", "text/plain", headers=OWN)
        if not answer.json()["again"]:
            break


def _hit_by_robot(robot: Client, number: int, pk: int) -> None:
    """Fetches the page as Chrome would, from one of many addresses, without a cookie."""
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    robot.cookies.clear()
    robot.get(f"/replay/{pk}/", REMOTE_ADDR=address)
