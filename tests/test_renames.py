"""Models and objects that get another name keep their counts, their history and their dots."""

import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from django.db import transaction
from redis import Redis

from readtrack import renames, reports, tracker
from readtrack.flush.run import flush
from readtrack.models import PendingPublication, Rename
from readtrack.operations import FollowRename
from readtrack.store import keys
from tests.conftest import Start
from tests.site.models import Page
from tests.support import factories
from tests.support.counts import view_times
from tests.support.depth import some
from tests.support.forks import Forks

SETTINGS = """
SECRET_KEY = "x"
USE_TZ = True
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
CACHES = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "%(redis)s"}}
INSTALLED_APPS = [
    "django.contrib.contenttypes", "django.contrib.auth", "readtrack", "readtrack.numbers", "readtrack.cluster", "shop", "store",
]
READTRACK = {"TIMEOUT": 5.0, "CLUSTER": {"partitions": %(partitions)d}, "MODELS": {
    %(product)r: {"counted": True},
}}
"""
MODELS = """
from django.db import models
from readtrack.models import Tracked

class %(section)s(models.Model):
    class Meta:
        app_label = "shop"

class %(post)s(Tracked):
    category = models.ForeignKey(%(section)s, on_delete=models.CASCADE)
    class Meta:
        app_label = "shop"

class %(product)s(models.Model):
    class Meta:
        app_label = %(app)r
        db_table = "products"
"""
INITIAL = """
operations = [
    migrations.CreateModel("Section", [("id", models.BigAutoField(primary_key=True))]),
    migrations.CreateModel("Post", [
        ("id", models.BigAutoField(primary_key=True)),
        ("view_count", CountField()),
        ("visitor_count", CountField()),
        ("category", models.ForeignKey("shop.Section", on_delete=CASCADE)),
    ]),
    migrations.CreateModel(
        "Product", [("id", models.BigAutoField(primary_key=True))], options={"db_table": "products"}
    ),
]
"""
HEAD = """
from django.db import migrations, models
from django.db.models.deletion import CASCADE
from readtrack.models.tracked import CountField
from readtrack.operations import FollowRename

class Migration(migrations.Migration):
    dependencies = %r
"""
START = """
import json, os
os.environ["DJANGO_SETTINGS_MODULE"] = "shop_settings"
import django
django.setup()
from django.core.management import call_command
from django.contrib.auth.models import User
from django.db import connection
from readtrack import reports, tracker
from readtrack.hits.visitors import Visitor
from readtrack.numbers import reports as numbers_reports
from shop.models import *

def view(obj, times, name):
    for number in range(times):
        assert tracker.view(obj, visitor=Visitor(f"{name}{number}"))

def numbers(*objs):
    call_command("readtrack", "flush", verbosity=0)
    [category] = [obj for obj in objs if type(obj)._meta.label in CATEGORIES]
    counted = [obj for obj in objs if obj is not category]
    return {
        "views": [reports.views([obj])[obj] for obj in counted],
        "visitors": [reports.visitors([obj])[obj] for obj in counted],
        "charts": [sum(point.views for point in numbers_reports.series(obj)) for obj in counted],
        "unread": len(reports.unread(User.objects.get(), [category])),
    }

CATEGORIES = {"shop.Section", "shop.Group"}
"""
BEFORE = """
call_command("migrate", verbosity=0)
user = User.objects.create(username="ann")
section = Section.objects.create()
post = Post.objects.create(category=section)
product = Product.objects.create()
for obj in (post, product):
    view(obj, 30, "early")
call_command("readtrack", "flush", verbosity=0)
for obj in (post, product):
    view(obj, 2, "late")  # which no flush has seen
tracker.mark_read(user, [section])
"""
KEPT = {"views": [32, 32], "visitors": [32, 32], "charts": [32, 32], "unread": 0}


class Project:
    """A site in a folder, whose models and migrations change."""

    def __init__(self, folder: Path, forks: Forks, redis: str, *, partitions: int = 1) -> None:
        self.folder = folder
        self._forks = forks
        self._redis = redis
        self._partitions = partitions
        for app in ("shop", "store"):
            (folder / app / "migrations").mkdir(parents=True)
            for package in (folder / app, folder / app / "migrations"):
                (package / "__init__.py").touch()
        (folder / "shop" / "urls.py").write_text("urlpatterns = []")
        (folder / "store" / "models.py").touch()
        self.name()
        self.migration("0001_initial", INITIAL)

    def name(
        self,
        *,
        section: str = "Section",
        post: str = "Post",
        product: str = "Product",
        app: str = "shop",
    ) -> None:
        """Gives the models their names in the code."""
        models = {"section": section, "post": post, "product": product, "app": app}
        (self.folder / "shop" / "models.py").write_text(MODELS % models)
        settings = {
            "redis": self._redis,
            "partitions": self._partitions,
            "product": f"{app}.{product}",
        }
        (self.folder / "shop_settings.py").write_text(SETTINGS % settings)

    def migration(
        self, name: str, body: str, *, app: str = "shop", after: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Writes a migration."""
        path = self.folder / app / "migrations" / f"{name}.py"
        path.write_text(HEAD % list(after) + "    " + dedent(body).strip().replace("\n", "\n    "))

    def run(self, code: str) -> Any:
        """Runs the code in a process of its own. Returns the last line that it printed, as JSON."""
        done = self._forks.run(START + dedent(code), folder=self.folder)
        assert done.code == 0
        lines = done.output.splitlines()
        return json.loads(lines[-1]) if lines else None


@pytest.fixture(params=some([1], deep=[1, 16]))
def project(
    request: pytest.FixtureRequest, tmp_path: Path, bare_forks: Forks, redis: Redis, redis_url: str
) -> Project:
    return Project(tmp_path, bare_forks, redis_url, partitions=request.param)


pytestmark = pytest.mark.one_server("writes the settings of a site with one Redis")

RENAMED = """
operations = [
    migrations.RenameModel("Section", "Group"),
    migrations.RenameModel("Post", "Article"),
    migrations.RenameModel("Product", "Item"),
]
"""
AFTER = """
call_command("migrate", verbosity=0)
print(json.dumps(numbers(Group.objects.get(), Article.objects.get(), Item.objects.get())))
"""


def test_a_renamed_model_keeps_all_it_had_there_and_back(project: Project) -> None:
    project.run(BEFORE)
    project.name(section="Group", post="Article", product="Item")
    project.migration("0002_renamed", RENAMED, after=[("shop", "0001_initial")])
    assert project.run(AFTER) == KEPT
    # And again, with no further migration.
    assert project.run(AFTER) == KEPT
    project.run('call_command("migrate", "shop", "0001", verbosity=0)')
    project.name()
    code = "print(json.dumps(numbers(Section.objects.get(), Post.objects.get(), Product.objects.get())))"
    assert project.run(code) == KEPT


def test_what_pages_count_before_redis_has_followed_is_added(project: Project) -> None:
    project.run(BEFORE)
    project.name(section="Group", post="Article", product="Item")
    project.migration("0002_renamed", RENAMED, after=[("shop", "0001_initial")])
    code = """
    from unittest.mock import patch
    from readtrack.store.circuit import circuit
    with patch("readtrack.renames.follow", side_effect=ConnectionError):
        call_command("migrate", verbosity=0)
    circuit.opened = None
    group, article, item = Group.objects.get(), Article.objects.get(), Item.objects.get()
    for obj in (article, item):
        view(obj, 3, "new")
    print(json.dumps(numbers(group, article, item)))
    """
    views = [35, 35]
    assert project.run(code) == {"views": views, "visitors": views, "charts": views, "unread": 0}


def test_what_the_old_code_counts_afterwards_is_added_by_a_full_flush(project: Project) -> None:
    project.run(BEFORE)
    old_code = """
    from readtrack import buckets
    from readtrack.hits.hit import Hit
    for number in range(4):
        for subject in ("shop.post:1", "shop.product:1"):
            hit = Hit(Visitor(f"old{number}"), buckets.now(), views=(subject,))
            assert tracker.record(hit).counted
    """
    project.name(section="Group", post="Article", product="Item")
    project.migration("0002_renamed", RENAMED, after=[("shop", "0001_initial")])
    assert project.run(AFTER) == KEPT
    project.run(old_code)
    views = [36, 36]
    assert project.run(AFTER) == {"views": views, "visitors": views, "charts": views, "unread": 0}


def test_two_models_swap_their_names(project: Project) -> None:
    project.run(BEFORE)
    project.run('view(Product.objects.get(), 5, "more")')
    project.name(post="Product", product="Post")
    body = """
    operations = [
        migrations.RenameModel("Post", "Other"),
        migrations.RenameModel("Product", "Post"),
        migrations.RenameModel("Other", "Product"),
    ]
    """
    project.migration("0002_swapped", body, after=[("shop", "0001_initial")])
    code = """
    call_command("migrate", verbosity=0)
    print(json.dumps(numbers(Section.objects.get(), Product.objects.get(), Post.objects.get())))
    """
    expected = {"views": [32, 37], "visitors": [32, 37], "charts": [32, 37], "unread": 0}
    assert project.run(code) == expected
    assert project.run(code) == expected


LEFT = """
operations = [
    migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("Product")]),
]
"""
ARRIVED = """
operations = [
    migrations.SeparateDatabaseAndState(state_operations=[
        migrations.CreateModel(
            "Product", [("id", models.BigAutoField(primary_key=True))],
            options={"db_table": "products"},
        ),
    ]),
    FollowRename("shop.Product", "store.Product"),
]
"""
CHECK = """
from readtrack.checks.migrations import check_moves
print(json.dumps([str(message.hint) for message in check_moves()]))
"""


def test_a_model_moves_to_another_app_by_an_operation_that_check_asks_for(
    project: Project,
) -> None:
    project.run(BEFORE)
    assert project.run(CHECK) == []
    project.name(app="store")
    project.migration("0002_left", LEFT, after=[("shop", "0001_initial")])
    after = [("shop", "0002_left")]
    project.migration(
        "0001_arrived", ARRIVED.replace("    FollowRename", "    #"), app="store", after=after
    )
    [hint] = project.run(CHECK)
    assert "FollowRename('shop.Product', 'store.Product')" in hint
    project.migration("0001_arrived", ARRIVED, app="store", after=after)
    assert project.run(CHECK) == []
    code = """
    call_command("migrate", verbosity=0)
    print(json.dumps(numbers(Section.objects.get(), Post.objects.get(), Product.objects.get())))
    """
    assert project.run(code) == KEPT


def test_a_rename_in_the_state_alone_is_followed_too(project: Project) -> None:
    project.run(BEFORE)
    project.name(product="Item")
    body = """
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("Product", "Thing"), migrations.RenameModel("Thing", "Item")
            ]
        ),
    ]
    """
    project.migration("0002_renamed", body, after=[("shop", "0001_initial")])
    code = """
    call_command("migrate", verbosity=0)
    print(json.dumps(numbers(Section.objects.get(), Post.objects.get(), Item.objects.get())))
    """
    assert project.run(code) == KEPT


def test_migrations_run_without_redis_and_before_readtracks_own(
    tmp_path: Path, bare_forks: Forks, redis: Redis
) -> None:
    project = Project(tmp_path, bare_forks, "redis://127.0.0.1:9/0")
    project.name(section="Group", post="Article", product="Item")
    project.migration("0002_renamed", RENAMED, after=[("shop", "0001_initial")])
    code = """
    call_command("migrate", "shop", verbosity=0)
    call_command("migrate", verbosity=0)
    call_command("sqlmigrate", "shop", "0002", verbosity=0, no_color=True)
    print(Article.objects.count())
    """
    assert project.run(code) == 0


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db(transaction=True)
def test_an_object_with_another_key_keeps_all_it_had(redis: Redis) -> None:
    from readtrack.numbers import reports as numbers_reports
    from readtrack.numbers.models import History

    page = Page.objects.create(slug="helo w")
    other = Page.objects.create(slug="other")
    user = factories.user()
    view_times(page, 3)
    view_times(other, 2)
    flush()
    view_times(page, 2)
    with transaction.atomic():
        Page.objects.filter(pk="helo w").update(slug="hello")
        renamed = Page.objects.get(pk="hello")
        tracker.rename(renamed, before="helo w")
        assert reports.views([renamed])[renamed] == 3
    assert reports.views([renamed])[renamed] == 5
    assert reports.views([other])[other] == 2
    run = flush()
    assert run.orphans == 0
    assert sum(point.views for point in numbers_reports.series(renamed)) == 5
    assert not History.objects.filter(subject__contains="helo%20w").exists()
    assert not redis.keys("views:*helo%20w")
    assert user


@pytest.mark.needs_parts("numbers")
@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_rolled_back_moves_nothing(redis: Redis) -> None:
    from readtrack.numbers import reports as numbers_reports

    page = Page.objects.create(slug="a")
    view_times(page, 3)
    flush()
    with transaction.atomic():
        tracker.rename(page, before="z")
        transaction.set_rollback(True)
    assert not Rename.objects.exists()
    with transaction.atomic():
        Page.objects.filter(pk="a").update(slug="b")
        tracker.rename(Page.objects.get(pk="b"), before="a")
        transaction.set_rollback(True)
    flush()
    assert reports.views([page])[page] == 3
    assert sum(point.views for point in numbers_reports.series(page)) == 3


@pytest.mark.django_db(transaction=True)
def test_news_that_waits_in_the_outbox_goes_to_the_new_name(redis: Redis) -> None:
    category = factories.category()
    user = factories.user()
    tracker.mark_read(user, [category])
    PendingPublication.objects.create(subject=f"shop.section:{category.pk}")
    renames.rename_model("shop.section", "site.category", pks=(), using="default")
    tracker.resend()
    assert reports.unread(user, [category]) == {category}


@pytest.mark.django_db(transaction=True)
def test_the_migrations_of_a_sites_tests_ask_no_redis(
    redis: Redis, start_redis: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "test_prefix", lambda: "test:")
    monkeypatch.setattr(renames, "follow", lambda: pytest.fail("asked"))
    renames.rename_model("shop.section", "site.category", pks=(), using="default")
    assert not Rename.objects.get().is_done


def test_the_operation_says_what_it_does_and_can_be_written() -> None:
    operation = FollowRename("blog.Post", "news.Article")
    assert operation.describe() == "Move what readtrack has about blog.Post to news.Article"
    assert operation.deconstruct() == ("FollowRename", ("blog.Post", "news.Article"), {})
