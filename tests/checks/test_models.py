"""Mistakes in the site's models, and in settings that name models, are found."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.db import models
from django.test import Client
from django.test.utils import isolate_apps
from django.urls import path
from pytest_django import Settings

from readtrack.admin import TrackedAdmin
from readtrack.checks.setup import check_setup
from readtrack.hits import readers
from readtrack.models import Tracked
from readtrack.subjects import has_read_state
from tests.checks.findings import found, the_message
from tests.site.models import Article, Counted, Manual, Page, Post
from tests.support import factories
from tests.support.rows import each_row


@each_row(
    ("options", "ids"),
    [
        ({"MODELS": {"site.Nothing": {"read_state": True}}}, ["readtrack.E008"]),
        ({"MODELS": {"nonsense": {"read_state": True}}}, ["readtrack.E008"]),
        ({"MODELS": {"site.Manual": {"read_state": True}}}, []),
        ({"MODELS": {"site.Nothing": {"counted": True}}}, ["readtrack.E008"]),
        ({"MODELS": {"site.Manual": {"counted": True}}}, []),
        ({"MODELS": {"site.Nothing": {"news_for": ["x"]}}}, ["readtrack.E008"]),
        (
            {"MODELS": {"site.Gadget": {"news_for": ["category", "maker", "name"]}}},
            ["readtrack.E044", "readtrack.E044"],
        ),
        ({"MODELS": {"site.Gadget": {"news_for": ["category", "shelves"]}}}, []),
        ({"UNIQUE": "guess"}, ["readtrack.E030"]),
        ({"UNIQUE": "daily"}, []),
    ],
)
def test_a_wrong_setting_is_found(
    settings: Settings, options: dict[str, Any], ids: list[str]
) -> None:
    settings.READTRACK = options
    assert found() == ids


@each_row(
    ("entries", "check_id", "words"),
    [
        ({"site.Manuel": {}}, "E008", "Did you mean 'site.Manual'? Name models as"),
        ({"sites.manual": {}}, "E008", "Did you mean 'site.Manual'? Name models as"),
        ({"nonsense": {}}, "E008", "Name models as"),
        ({7: {}}, "E008", "Name models as"),
        ({"site.Manual": {"count": True}}, "E046", "Did you mean 'counted'? Give a dict"),
        ({"site.Manual": {"readstate": True}}, "E046", "Did you mean 'read_state'? Give a dict"),
        ({"site.Manual": {7: True}}, "E046", "Give a dict"),
        ({"site.Manual": ["counted"]}, "E046", "Give a dict"),
        ({"site.Manual": {"counted": "yes"}}, "E046", "Give a dict"),
        ({"site.Manual": {"read_state": "bitmpa"}}, "E046", "Did you mean 'bitmap'? Give a dict"),
        ({"site.Manual": {"read_state": []}}, "E046", "Give a dict"),
        ({"site.Gadget": {"news_author": 7}}, "E046", "Give a dict"),
        ({"site.Gadget": {"is_news": len}}, "E046", "Give a dict"),
        ({"site.Gadget": {"news_autor": "maker"}}, "E046", "Did you mean 'news_author'? Give a"),
        ({"site.Gadget": {"news_author": "maker"}}, "E009", "Name its fields"),
        ({"site.Gadget": {"is_news": "tests.site.models.nothing"}}, "E054", "Give the path of"),
        ({"site.Gadget": {"is_news": "tests.site.models.Gadget.no"}}, "E054", "Give the path of"),
        ({"site.Gadget": {"is_news": "approved"}}, "E054", "Give the path of a function"),
        ({"site.Gadget": {"news_for": ["catgory"]}}, "E044", "Did you mean: category? List"),
        ({"site.Gadget": {"news_for": "category"}}, "E044", "List relations"),
    ],
)
def test_a_wrong_entry_of_models_is_found_with_what_was_meant(
    settings: Settings, entries: dict[Any, Any], check_id: str, words: str
) -> None:
    settings.READTRACK = {"MODELS": entries}
    assert found() == [f"readtrack.{check_id}"]
    message = the_message(f"readtrack.{check_id}")
    assert str(message.hint).startswith(words)
    assert str(next(iter(entries))) in message.msg


@pytest.mark.parametrize("form", [True, False, "bitmap", "sequence"])
def test_read_state_is_on_or_off_or_a_form(settings: Settings, form: bool | str) -> None:
    settings.READTRACK = {"MODELS": {"site.Manual": {"read_state": form}}}
    assert found() == []
    assert has_read_state(Manual) == bool(form)


@pytest.mark.parametrize("name", ["section__parent", "slug", "sektion"])
def test_news_for_something_that_cannot_be_followed_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Page, "news_for", ("section", name))
    assert found() == ["readtrack.E044"]
    assert f"names {name!r}, which is no foreign key" in the_message("readtrack.E044").msg


def test_news_for_a_text_in_place_of_a_list_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Page, "news_for", ("section"))
    assert found() == ["readtrack.E044"]
    assert "is 'section' and no list, such as ['section']" in the_message("readtrack.E044").msg


@isolate_apps("tests.site", attr_name="apps")
def test_a_composite_primary_key_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Chapter(Tracked):
        pk = models.CompositePrimaryKey("book", "number")
        book = models.IntegerField()
        number = models.IntegerField()

        class Meta:
            app_label = "site"

    monkeypatch.setattr("readtrack.subjects.counted_models", lambda: [Chapter])
    assert "readtrack.E010" in found()


def test_a_child_with_another_key_than_its_counts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with isolate_apps("tests.site") as own:

        class Media(models.Model):
            media_id = models.AutoField(primary_key=True)

            class Meta:
                app_label = "site"

        class Text(Tracked):
            class Meta:
                app_label = "site"

        class VideoText(Media, Text):
            class Meta:
                app_label = "site"

        class LongVideoText(VideoText):
            class Meta:
                app_label = "site"

        class TextVideo(Text, Media):
            class Meta:
                app_label = "site"

        class Heading(TextVideo):
            class Meta:
                app_label = "site"
                proxy = True

    monkeypatch.setattr("readtrack.checks.models.apps", own)
    strays = [str(message.msg) for message in check_setup(None) if message.id == "readtrack.E045"]
    assert [text.partition(" ")[0] for text in strays] == ["site.VideoText", "site.LongVideoText"]
    assert "a view counts for another row of site.Text" in strays[0]


@isolate_apps("tests.site", attr_name="apps")
def test_a_count_field_of_ones_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Story(Tracked):
        view_count = models.IntegerField(default=0)

        class Meta:
            app_label = "site"

    monkeypatch.setattr("readtrack.subjects.tracked_models", lambda: [Story])
    assert [message.id for message in check_setup(None)] == ["readtrack.W019", "readtrack.W011"]
    message = the_message("readtrack.W019")
    assert (
        message.msg
        == "site.Story.view_count is a field of the model's own, so save() can write an old count back."
    )
    assert "Delete its line" in str(message.hint)


def test_a_model_without_its_migration_is_found(settings: Settings) -> None:
    settings.MIGRATION_MODULES = {"site": "tests.empty_migrations"}
    assert set(found()) == {"readtrack.W011"}
    assert "makemigrations site" in str(check_setup(None)[-1].hint)


def test_makemigrations_is_not_asked_for_what_it_makes(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MIGRATION_MODULES = {"site": "tests.empty_migrations"}
    monkeypatch.setattr("sys.argv", ["manage.py", "makemigrations"])
    assert found() == []


def test_a_new_project_with_a_user_model_of_its_own_can_make_its_migrations(
    settings: Settings,
) -> None:
    # The app of the user model has no migration yet, and migrations of Django's own apps depend on
    # it.
    settings.MIGRATION_MODULES = {
        "site": "tests.empty_migrations",
        "auth": "tests.empty_migrations",
    }
    assert set(found()) == {"readtrack.W011"}


def migration(folder: Path, name: str, body: str) -> str:
    """Writes a package of one migration. Returns its name."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").touch()
    head = "from django.db import migrations, models\nclass Migration(migrations.Migration):\n"
    (package / "0001_initial.py").write_text(f"{head}    {body}\n")
    return name


def test_a_count_that_no_migration_adds_is_named(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    body = """operations = [migrations.CreateModel("Post", [("view_count", models.IntegerField(primary_key=True))])]"""
    settings.MIGRATION_MODULES = {"site": migration(tmp_path, "half_migrations", body)}
    messages = {message.msg for message in check_setup(None) if message.id == "readtrack.W011"}
    assert "site.Post counts views, but no migration adds visitor_count." in messages
    assert (
        "site.Product counts views, but no migration adds view_count and visitor_count." in messages
    )


def test_broken_migrations_are_left_to_djangos_own_commands(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    body = """dependencies = [("site", "0000_gone")]"""
    settings.MIGRATION_MODULES = {"site": migration(tmp_path, "broken_migrations", body)}
    assert found() == []


@pytest.fixture
def site() -> Iterator[admin.AdminSite]:
    """Returns an admin site without models."""
    site = admin.AdminSite()
    yield site
    all_sites.discard(site)  # which the checks look at


@pytest.mark.django_db
@pytest.mark.parametrize(
    "options", [{"fields": ("title", "view_count")}, {"fields": ("title",)}, {}], ids=str
)
def test_the_admin_class_of_tracked_models_shows_a_count_in_its_form(
    options: dict[str, Any], site: admin.AdminSite, settings: Settings, admin_client: Client
) -> None:
    post = factories.post(view_count=1234)
    site.register(Post, type("OwnAdmin", (TrackedAdmin,), options))
    settings.ROOT_URLCONF = (path("admin/", site.urls),)
    assert found() == []
    page = admin_client.get(f"/admin/site/post/{post.pk}/change/").text
    assert ('<div class="readonly">1234</div>' in page) == (
        "view_count" in options.get("fields", ())
    )


def test_an_app_without_migrations_needs_none(settings: Settings) -> None:
    settings.MIGRATION_MODULES = {"site": None}
    assert found() == []


def test_a_site_without_tracked_models_has_nothing_to_migrate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("readtrack.subjects.tracked_models", list)
    assert found() == []


def test_a_models_own_way_of_counting_visitors_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Counted, "unique_strategy", "guess")
    words = "site.Counted.unique_strategy is 'guess', which is no way to count unique visitors."
    assert the_message("readtrack.E030").msg == words


@pytest.mark.parametrize(
    ("attribute", "value"), [("news_fields", ("titel",)), ("news_author", "autor")]
)
def test_a_field_that_is_none_is_named(
    attribute: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Article, attribute, value)
    (message,) = check_setup(None)
    assert message.id == "readtrack.E009"
    assert f"site.Article.{attribute}" in message.msg


def test_bitmaps_of_visitors_need_whole_numbers(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.READTRACK = {"UNIQUE": "bitmap", "DOTS": {"readers": "ordinal"}}
    assert found() == []
    model = SimpleNamespace(_meta=SimpleNamespace(pk=models.UUIDField()))
    monkeypatch.setattr(readers, "get_user_model", lambda: model)
    assert found() == ["readtrack.W034", "readtrack.W034"]
    settings.READTRACK = {}
    assert found() == ["readtrack.W034"]  # a model of the test site chose them


BARE_SITE = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "readtrack"],
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://h/0"}},
    MIDDLEWARE=["readtrack.middleware.ReadTrackMiddleware"],
    READTRACK={"MODELS": {MODELS}},
)
django.setup()
from readtrack.checks.setup import check_setup
print([message.id for message in check_setup(None)])
"""


@pytest.mark.parametrize(
    ("entries", "ids"),
    [
        ("", "['readtrack.W055']"),
        ("'auth.Group': {'counted': True}", "[]"),
        ("'auth.Group': {'read_state': True}", "[]"),
    ],
)
def test_a_site_without_any_model_to_count_is_told_so(entries: str, ids: str) -> None:
    code = BARE_SITE.replace("{MODELS}", "{" + entries + "}")
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.strip() == ids
