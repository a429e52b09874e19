"""The core with this part alone: it is added to a live site, is missed, and is taken away."""

import json
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from readtrack.store.keys import TAG
from tests.support.forks import Forks

pytestmark = pytest.mark.one_server("starts sites of its own")

# A process of the site: what it does, its database, its setting and its parts. It prints what it saw.
SITE = """
import json
import sys
from secrets import token_hex

import django
from django.conf import settings

acts, database, readtrack_settings, caches, *parts = sys.argv[1:]
settings.INSTALLED_APPS = [
    name for name in settings.INSTALLED_APPS if not name.startswith("readtrack.")
]
settings.INSTALLED_APPS += parts
settings.DATABASES["default"]["NAME"] = database
settings.CACHES["default"].update(json.loads(caches))
settings.READTRACK = {**settings.READTRACK, **json.loads(readtrack_settings)}
django.setup()
from django.core.checks import run_checks
from django.core.management import CommandError, call_command

from readtrack import reports, tracker
from readtrack.flush.run import flush
from readtrack.hits.visitors import Visitor
from tests.site.models import Post
from tests.support import factories


def begin():
    call_command("migrate", verbosity=0, run_syncdb=True)
    factories.post()


def view():
    subject = f"site.post:{Post.objects.get().pk}"
    assert tracker.record(factories.hit(subject, visitor=Visitor(token_hex(8)))).counted


def repartition():
    call_command("readtrack", "repartition", verbosity=0)


refusals = []
for act in acts.split():
    try:
        globals()[act]()
    except Exception as error:
        refusals.append(str(error))
post = Post.objects.first() if acts else None
print(json.dumps({
    "shown": post and reports.views([post])[post],
    "stored": post and post.view_count,
    "refusals": refusals,
    "problems": {message.id: [message.msg, message.hint] for message in run_checks()},
    "is loaded": "readtrack.cluster.client" in sys.modules,
}))
"""
DIVIDED = {"CLUSTER": {"partitions": 16}}
FACTORY = {"OPTIONS": {"CONNECTION_FACTORY": "readtrack.cluster.connection.ClusterFactory"}}


class Site:
    """A site whose processes have other parts and settings each."""

    def __init__(self, forks: Forks, folder: Path, redis_url: str) -> None:
        self.forks = forks
        self.database = str(folder / "site.sqlite3")
        self.redis_url = redis_url

    def run(
        self,
        acts: str,
        *parts: str,
        setting: dict[str, Any] | None = None,
        cache: dict[str, Any] | None = None,
    ) -> Any:
        """Returns what a process has seen that did this."""
        done = self.forks.run(
            SITE,
            acts,
            self.database,
            json.dumps(setting or {}),
            json.dumps(cache or {}),
            *parts,
            DJANGO_SETTINGS_MODULE="tests.settings",
            DATABASE_URL="sqlite:///:memory:",
            READTRACK_TEST_REDIS_URL=self.redis_url,
        )
        assert done.code == 0, done.output
        return json.loads(done.output)


@pytest.fixture
def site(bare_forks: Forks, tmp_path: Path, redis_url: str) -> Site:
    return Site(bare_forks, tmp_path, redis_url)


def tagged(redis: Redis) -> set[bool]:
    """Returns True if keys of totals have a tag, and False if some have none."""
    return {bool(TAG.search(str(name))) for name in redis.scan_iter("views:total:*")}


def test_it_is_added_to_a_live_site_and_taken_away_again(site: Site, redis: Redis) -> None:
    begun = site.run("begin view flush")
    assert (begun["stored"], begun["refusals"], begun["is loaded"]) == (1, [], False)
    assert tagged(redis) == {False}

    # Each flush of the new number does nothing until the keys are moved.
    added = site.run("flush", "readtrack.cluster", setting=DIVIDED)
    assert added["refusals"] == [
        "The number of partitions in Redis is 1. Run: manage.py readtrack repartition"
    ]
    moved = site.run("repartition view flush", "readtrack.cluster", setting=DIVIDED)
    assert (moved["stored"], moved["refusals"], moved["problems"]) == (2, [], {})
    assert tagged(redis) == {True}

    # Begun with an empty Redis, one partition has all that SQL has.
    site.run("flush", "readtrack.cluster", setting=DIVIDED)
    redis.flushdb()
    away = site.run("flush view flush")
    assert (away["stored"], away["shown"], away["refusals"]) == (3, 3, [])
    assert tagged(redis) == {False}


def test_with_one_partition_it_comes_and_goes(site: Site) -> None:
    assert site.run("begin view flush", "readtrack.cluster")["is loaded"] is False
    assert site.run("view flush")["stored"] == 2
    assert site.run("view flush", "readtrack.cluster")["stored"] == 3


@pytest.mark.parametrize("setting", [{}, DIVIDED], ids=["nothing", "the setting"])
def test_a_site_that_misses_it_stores_nothing_until_it_is_back(
    site: Site, setting: dict[str, Any]
) -> None:
    site.run("begin view flush", "readtrack.cluster", setting=DIVIDED)
    missed = site.run("view flush", setting=setting)
    [refusal] = missed["refusals"]
    assert refusal.startswith("The number of partitions in Redis is 16, and cannot fall.")
    assert "'readtrack.cluster' in INSTALLED_APPS" in refusal
    assert missed["stored"] == 1
    assert ("readtrack.W090" in missed["problems"]) == bool(setting)
    back = site.run("view flush", "readtrack.cluster", setting=DIVIDED)
    assert (back["stored"], back["shown"], back["refusals"]) == (2, 2, [])


@pytest.mark.parametrize("parts", [[], ["readtrack.cluster"]], ids=["without", "with"])
def test_a_cluster_without_partitions_is_refused_whether_the_part_is_there_or_not(
    site: Site, parts: list[str]
) -> None:
    problems = site.run("", *parts, cache=FACTORY)["problems"]
    message, hint = problems["readtrack.E012"]
    assert "needs 'readtrack.cluster' in INSTALLED_APPS, and READTRACK['CLUSTER']" in message
    assert "readtrack.cluster" in hint


def test_a_number_of_partitions_outside_of_its_dict_is_no_setting(site: Site) -> None:
    outside = {"PARTITIONS": 16}
    message, _ = site.run("", setting=outside)["problems"]["readtrack.W003"]
    assert message == "READTRACK has no setting 'PARTITIONS'."
    _, hint = site.run("", "readtrack.cluster", setting=outside)["problems"]["readtrack.W003"]
    assert hint == "Did you mean: CLUSTER['partitions']?"
