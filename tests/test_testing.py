"""Tests of a site: the documentation's example works, and keys of a live site stay as they are."""

import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from readtrack import reports, testing, tracker
from readtrack.flush.run import flush
from readtrack.store import keys
from tests.support import factories
from tests.support.addresses import redis_url_of
from tests.support.forks import Forks

DOCUMENT = Path(__file__).parent.parent / "docs" / "howto" / "testing.md"
# Django's runner says on standard error how it went.
TEST = """
import sys
from django.core.management import execute_from_command_line
sys.stderr = sys.stdout
execute_from_command_line(sys.argv)
"""
# One page of the test server, in place of the server.
SERVE = """
import sys
from django.core.management import execute_from_command_line
from django.core.management.commands import runserver
sys.stderr = sys.stdout

def visit(*args, **options):
    from tests.support import factories
    post = factories.post(pk=1)
    factories.browser().get("/posts/1/")
    print("served", post.pk)

runserver.Command.handle = visit
execute_from_command_line(sys.argv)
"""
BEFORE = """
class AFirstTests(TestCase):
    def test_a_page_with_running_clocks(self):
        post = Post.objects.create(title="News")
        Client(headers={"User-Agent": BROWSER}).get(f"/posts/{post.pk}/")
"""
NINE = 9  # the tests' own database in Redis
BESIDE = """
    def test_where_a_live_site_is_beside(self):
        post = Post.objects.create(pk=1, title="News")
        self.client.get("/posts/1/")
        tracker.publish([post])
        with self.captureOnCommitCallbacks(execute=True):
            post.delete()
        Post.objects.create(pk=2, title="News")
        for _ in range(5):  # the last of them are told when the tests are over
            Client().get("/posts/2/function/")
"""


@pytest.fixture(autouse=True)
def is_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys have no worker's name in them, even if this test runs in a worker."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


@pytest.fixture
def nine(redis_url: str) -> Iterator[Redis]:
    """Returns a client of database 9 in the tests' Redis."""
    with Redis.from_url(
        re.sub(r"(/\d*)?$", f"/{NINE}", redis_url, count=1), decode_responses=True
    ) as client:
        yield client
        client.flushdb()


def run_tests(forks: Forks, folder: Path, code: str, *words: str, redis: Redis) -> str:
    """Returns the output of Django's test runner for that code."""
    (folder / "test_recipe.py").write_text(code.replace("blog.models", "tests.site.models"))
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "READTRACK_TEST_REDIS_URL": redis_url_of(redis, database=NINE),
        "DATABASE_URL": "sqlite://",
    }
    return forks.run(TEST, "test", "test_recipe", *words, folder=folder, **environment).output


def recipe() -> str:
    """Returns the documentation's example."""
    [code] = re.findall(
        r"```python\n([^`]*?class PostTests.*?)```", DOCUMENT.read_text(), re.DOTALL
    )
    return str(code)


def test_the_recipe_works_and_keeps_to_the_tests_keys(
    tmp_path: Path, nine: Redis, bare_forks: Forks
) -> None:
    said = run_tests(bare_forks, tmp_path, recipe(), redis=nine)
    assert "Ran 2 tests" in said
    assert "\nOK\n" in said
    found: list[Any] = nine.keys()
    assert found
    assert all(key.startswith("test:") for key in found)


def frozen_recipe() -> str:
    """Returns the documentation's example with frozen time, for this machine."""
    [code] = re.findall(
        r"```python\n([^`]*?class FrozenTests.*?)```", DOCUMENT.read_text(), re.DOTALL
    )
    if find_spec("freezegun") is None:
        code = code.replace("from freezegun import", "from tests.support.frozen import")
    return str(code)


@pytest.mark.parametrize("count_before", ["", BEFORE], ids=["", "after a test with running clocks"])
def test_the_recipe_with_frozen_time_works(
    tmp_path: Path, nine: Redis, bare_forks: Forks, count_before: str
) -> None:
    code = frozen_recipe() + count_before
    assert "\nOK\n" in run_tests(bare_forks, tmp_path, code, redis=nine)


@pytest.mark.skipif(find_spec("time_machine") is None, reason="time-machine is not installed")
def test_the_recipe_works_with_time_machine(tmp_path: Path, nine: Redis, bare_forks: Forks) -> None:
    code = frozen_recipe() + BEFORE
    code = code.replace("from freezegun import", "from time_machine import")
    code = code.replace("from tests.support.frozen import", "from time_machine import")
    code = code.replace("freeze_time(", "travel(").replace("freeze_time", "travel")
    code = code.replace('00")', '00", tick=False)')
    assert "\nOK\n" in run_tests(bare_forks, tmp_path, code, redis=nine)


def test_the_test_server_leaves_the_sites_keys_alone(
    tmp_path: Path, nine: Redis, bare_forks: Forks
) -> None:
    nine.set("views:total:site.post:1", 7)
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "READTRACK_TEST_REDIS_URL": redis_url_of(nine, database=NINE),
        "DATABASE_URL": "sqlite://",
    }
    (tmp_path / "rows.json").write_text(
        '[{"model": "auth.group", "pk": 1, "fields": {"name": "a"}}]'
    )
    words = ("testserver", "--noinput", "rows.json")
    said = bare_forks.run(SERVE, *words, folder=tmp_path, **environment).output
    assert "served 1" in said
    found: list[Any] = nine.keys()
    assert nine.get("views:total:site.post:1") == "7"
    assert "test:views:total:site.post:1" in found
    assert {key for key in found if not key.startswith("test:")} == {"views:total:site.post:1"}


def test_tests_beside_a_live_site_touch_none_of_its_keys(
    tmp_path: Path, nine: Redis, bare_forks: Forks
) -> None:
    live = {
        "views:total:site.post:1": "7",
        "category:site.category:1:read": "x",
        "views:skips:2026112012": "y",
    }
    nine.mset(live)
    assert "\nOK\n" in run_tests(bare_forks, tmp_path, recipe() + BESIDE, redis=nine)
    found: set[Any] = set(nine.scan_iter())
    ours = {key for key in found if str(key).startswith("test:")}
    assert {key: nine.get(key) for key in found - ours} == live
    assert "test:views:total:site.post:1" not in ours
    robots = [nine.hget(key, "bot") for key in ours if key.startswith("test:views:skips:")]
    assert sum(int(count or 0) for count in robots) == 5


def test_tests_that_run_side_by_side_have_keys_of_their_own(
    tmp_path: Path, nine: Redis, bare_forks: Forks
) -> None:
    more = "".join(f"\n\nclass More{number}(PostTests):\n    pass\n" for number in range(5))
    said = run_tests(bare_forks, tmp_path, recipe() + more, "--parallel", "2", redis=nine)
    assert "Ran 12 tests" in said
    assert "\nOK\n" in said
    assert {str(key).split(":")[1] for key in nine.scan_iter()} <= {"1", "2"}


@pytest.mark.usefixtures("test_prefix")
def test_pytests_processes_have_keys_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    assert keys.TAG.sub("", keys.total("a:1")) == "test:gw1:views:total:a:1"


@pytest.mark.django_db
@pytest.mark.usefixtures("new_redis")
def test_only_keys_of_tests_are_cleared(redis: Redis, request: pytest.FixtureRequest) -> None:
    redis.mset({"views:total:site.post:1": 7, "test": 1})
    with pytest.raises(RuntimeError, match="set up Django's test environment"):
        testing.clear()
    request.getfixturevalue("test_prefix")
    tracker.record(factories.hit("site.post:1"))
    tracker.skip(["site.post:1"], "bot")
    assert redis.exists("test:views:total:site.post:1")
    testing.clear()
    assert set(redis.scan_iter()) == {"views:total:site.post:1", "test", "test:reads:began"}
    assert reports.skips()["bot"] == 0


@pytest.mark.django_db
@pytest.mark.usefixtures("test_prefix")
@pytest.mark.usefixtures("new_redis")
def test_everything_works_behind_the_prefix(redis: Redis) -> None:
    post = factories.post()
    tracker.record(factories.hit(f"site.post:{post.pk}"))
    flush()
    post.refresh_from_db()
    assert (post.view_count, reports.views([post])) == (1, {post: 1})
    assert {key.split(":")[0] for key in redis.scan_iter()} == {"test"}
    assert keys.parse(f"test:views:total:site.post:{post.pk}")[0] is keys.total


@pytest.mark.usefixtures("test_prefix")
def test_a_site_that_serves_pages_has_its_plain_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys.TAG.sub("", keys.total("a:1")) == "test:views:total:a:1"
    monkeypatch.setattr(keys, "_has_tested", False)
    monkeypatch.delitem(sys.modules, "django.test.utils")
    assert keys.TAG.sub("", keys.total("a:1")) == "views:total:a:1"
