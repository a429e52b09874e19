"""A part is added to a live site, and taken away again: the core goes on, and nothing is lost."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet
from redis import Redis

from tests.support.forks import Forks

pytestmark = pytest.mark.one_server("starts sites of its own")

# A process of the site: what it does, its database, more settings and its parts. It prints what it
# saw.
SITE = """
import json
import sys
from secrets import token_hex

import django
from django.conf import settings

acts, database, more_settings, *parts = sys.argv[1:]
settings.INSTALLED_APPS = [
    name for name in settings.INSTALLED_APPS if not name.startswith("readtrack.")
]
settings.INSTALLED_APPS += parts
settings.DATABASES["default"]["NAME"] = database
settings.READTRACK = {
    **settings.READTRACK,
    "NUMBERS": {"dimensions": ["device"], "funnels": True},
    "RATE": (0, 10),
    **json.loads(more_settings),
}
django.setup()
from django.core.management import CommandError, call_command
from django.db import connection
from redis import Redis

from readtrack import reports, tracker
from readtrack.doctor.report import examine
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from readtrack.models import Archive
from tests.site.models import Category, Post
from tests.support import factories

redis = Redis.from_url(settings.CACHES["default"]["LOCATION"], decode_responses=True)


def begin():
    call_command("migrate", verbosity=0)
    tracker.publish([factories.category()])
    factories.post()


def migrate():
    call_command("migrate", verbosity=0)


def view():
    subject = f"site.post:{Post.objects.get().pk}"
    visitor = Visitor(token_hex(8))
    hit = factories.hit(subject, visitor=visitor, dimensions=(("device", "phone"),))
    assert tracker.record(hit).counted


def flush_all():
    run = flush(must_archive=True)
    assert not run.error, run.error
    assert not run.failed


def view_page():
    if "readtrack.networks" in parts:
        from readtrack.networks import lookup

        lookup.files().read()
    post = Post.objects.get()
    address = f"192.0.2.{post.view_count + 1}"  # each time another visitor
    page = factories.browser(REMOTE_ADDR=address).get(f"/posts/{post.pk}/")
    assert page.headers["X-Readtrack"].startswith("counted"), page.headers["X-Readtrack"]


def forget_tenant():
    try:
        return call_command("readtrack", "forget-tenant", "blue", interactive=False)
    except CommandError as error:
        return str(error)


def use():  # what parts offer
    category = Category.objects.get()
    user = factories.user(username=token_hex(8), is_staff=True, is_superuser=True)
    browser = factories.browser()
    browser.force_login(user)
    subject = f"site.category:{category.pk}"
    dots = browser.get("/readtrack/unread/", {"category": subject})
    form = browser.get(f"/admin/site/post/{Post.objects.get().pk}/change/").text
    looks.append({
        "tenants": forget_tenant(),
        "audience": browser.get(f"/admin/readtrack/readers/{subject}/").status_code,
        "link": "Who has read it" in form,
        "front_end": dots.json() if dots.status_code == 200 else dots.status_code,
        "tables": sorted(connection.introspection.table_names()),
    })


def forget():
    call_command("migrate", "readtrack_numbers", "zero", verbosity=0)


def let_a_day_pass():
    for key in ("views:unsettled", "views:dimensions"):
        marks = redis.zrange(key, 0, -1, withscores=True)
        redis.zadd(key, {name: score - 86_400e6 for name, score in marks})


def let_a_month_pass():
    for archive in Archive.objects.all():
        Archive.objects.filter(pk=archive.pk).update(hour=archive.hour - 24 * 31)


def lose_hashes():
    redis.delete("funnel:site.post:1", "views:device:site.post:1")


def look():
    [post], [category] = Post.objects.all(), Category.objects.all()
    user = factories.user(username=token_hex(8))
    found = {
        "views": reports.views([post])[post],
        "in SQL": post.view_count,
        "is unread": category in reports.unread(user, [category]),
        "keys": [name for name in redis.keys("*") if redis.ttl(name) == -1 and ":site.post" in name],
        "unsettled": [name for name in redis.zrange("views:unsettled", 0, -1) if name[:5] != "epoch"],
        "has tables": any("numbers" in name for name in connection.introspection.table_names()),
        "doctor": [[finding.message, finding.hint] for finding in examine(["parts"])],
    }
    if "readtrack.numbers" in parts:
        from readtrack.numbers import reports as numbers_reports

        found["history"] = sum(point.views for point in numbers_reports.series(post, hours=2))
        for dimension in settings.READTRACK["NUMBERS"]["dimensions"]:
            found[dimension] = numbers_reports.breakdown(post, dimension)
    looks.append(found)


looks = []
for name in acts.split():
    globals()[name]()
print(json.dumps(looks))
"""

NUMBERS = "readtrack.numbers"
NETWORKS = "readtrack.networks"


@pytest.fixture
def site(bare_forks: Forks, redis_url: str, redis: Redis, tmp_path: Path) -> Callable[..., Any]:
    """Returns a function that lets a process of the site with these parts act, and returns what it
    saw at each look.
    """
    redis.flushdb()

    def run(acts: str, *parts: str, **more_settings: Any) -> Any:
        done = bare_forks.run(
            SITE,
            acts,
            str(tmp_path / "site.sqlite3"),
            json.dumps(more_settings),
            *parts,
            DJANGO_SETTINGS_MODULE="tests.settings",
            DATABASE_URL="sqlite:///:memory:",
            READTRACK_TEST_REDIS_URL=redis_url,
        )
        assert done.code == 0, done.output
        return json.loads(done.output.splitlines()[-1])

    return run


TOTALS = {"views:hll:site.post:1", "views:total:site.post:1"}
HASHES = {"funnel:site.post:1", "views:device:site.post:1"}


def test_a_part_comes_and_goes(site: Callable[..., Any]) -> None:
    [alone] = site("begin view view flush_all look")
    assert (alone["views"], alone["in SQL"], alone["is unread"]) == (2, 2, True)
    assert set(alone["keys"]) == TOTALS
    assert alone["doctor"] == [["Parts: none, which is the core alone.", ""]]

    # History begins: what was viewed before is in the totals, and in no hour.
    [added, *_] = site("migrate flush_all view flush_all look lose_hashes view look", NUMBERS)
    assert (added["views"], added["in SQL"], added["is unread"]) == (3, 3, True)
    assert (added["history"], added["device"]) == (1, {"phone": 1})
    assert set(added["keys"]) == TOTALS | HASHES

    # It is taken away between a view and the flush.
    acts = "view flush_all flush_all look let_a_day_pass flush_all look let_a_month_pass flush_all look"
    [at_once, a_day_later, a_month_later] = site(acts)
    assert (at_once["views"], at_once["in SQL"], at_once["is unread"]) == (5, 5, True)
    assert set(at_once["unsettled"]) == HASHES
    [[message, hint]] = at_once["doctor"]
    assert message.startswith(f"SQL has the tables of {NUMBERS}, ")
    assert "run manage.py migrate readtrack_numbers zero" in hint
    assert a_day_later["unsettled"] == []
    assert "views:device:site.post:1" not in a_day_later["keys"]
    assert a_month_later["keys"] == []
    assert (a_month_later["views"], a_month_later["in SQL"]) == (5, 5)

    site("forget", NUMBERS)
    [last] = site("view flush_all look")
    assert (last["views"], last["in SQL"], last["is unread"]) == (6, 6, True)
    assert not last["has tables"]
    assert last["doctor"] == alone["doctor"]


# What these parts answer while they are there.
ANSWERS = {
    "tenants": "Removed 0 keys of blue.",
    "audience": 200,
    "link": True,
    "front_end": {"site.category:1": {"unread": True, "count": 1}},
}


def test_parts_without_tables_and_keys_come_and_go(site: Callable[..., Any]) -> None:
    new = ["readtrack.audience", "readtrack.front_end", "readtrack.tenants"]
    more = {
        "PREFIX": "tests.support.tenants.the_tenant",
        "MODELS": {"site.Post": {"read_state": True}},
    }
    [alone, before] = site("begin view flush_all look use", **more)
    assert (alone["views"], alone["in SQL"], alone["is unread"]) == (1, 1, True)
    assert (before["audience"], before["link"], before["front_end"]) == (404, False, 404)
    assert before["tenants"] == "`forget-tenant` needs 'readtrack.tenants' in INSTALLED_APPS."

    [added, used] = site("migrate view flush_all look use", *new, **more)
    assert (added["views"], added["in SQL"], added["is unread"]) == (2, 2, True)
    assert added["keys"] == alone["keys"]
    used["front_end"] = used["front_end"]["categories"]
    assert used == {**before, **ANSWERS}

    [taken_away, after] = site("view flush_all look use", **more)
    assert (taken_away["views"], taken_away["in SQL"], taken_away["is unread"]) == (3, 3, True)
    assert (taken_away["keys"], taken_away["doctor"]) == (alone["keys"], alone["doctor"])
    assert after == before


def test_countries_are_known_while_the_files_of_networks_are_there(
    site: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "countries.mmdb"
    writer = MMDBWriter(ip_version=4)
    writer.insert_network(IPSet(["192.0.2.0/24"]), {"country_code": "DE"})
    writer.to_db_file(str(path))
    more = {
        "NUMBERS": {"dimensions": ["country"]},
        "NETWORKS": {"databases": [str(path)]},
        "DEBUG_HEADER": True,
    }
    [without] = site("begin view_page flush_all look", NUMBERS, **more)
    assert (without["views"], without["history"], without["country"]) == (1, 1, {})
    [added] = site("migrate view_page flush_all look", NUMBERS, NETWORKS, **more)
    assert (added["views"], added["history"], added["country"]) == (2, 2, {"DE": 1})
    [taken_away] = site("view_page flush_all look", NUMBERS, **more)
    assert (taken_away["views"], taken_away["history"]) == (3, 3)
    assert taken_away["country"] == {"DE": 1}
    assert taken_away["doctor"] == without["doctor"]
