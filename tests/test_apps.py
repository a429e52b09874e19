"""The app's registration."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks.registry import registry
from django.core.exceptions import ImproperlyConfigured

from readtrack import apps as readtrack_apps
from readtrack import models
from tests.support.forks import Forks


def test_the_app_has_a_name_for_people_and_registers_its_checks() -> None:
    assert str(apps.get_app_config("readtrack").verbose_name)
    registered: set[Any] = registry.registered_checks
    assert {readtrack_apps.check_setup, readtrack_apps.check_databases} <= registered


def test_a_site_that_has_not_installed_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(apps.app_configs, "readtrack")
    with pytest.raises(ImproperlyConfigured, match='add "readtrack" to INSTALLED_APPS'):
        runpy.run_path(str(Path(models.__file__)))


EARLY = """
from django.conf import settings
settings.READTRACK = {"MODELS": {"site.Post": {"read_state": True}}}
import django
django.setup()
from django.contrib import admin
from readtrack.subjects import has_read_state
from tests.site.models import Post
print(has_read_state(Post), [one.__name__ for one in admin.site._registry[Post].actions])
"""


def test_an_admin_that_is_made_before_the_app_is_ready_knows_its_settings(
    bare_forks: Forks,
) -> None:
    assert settings.INSTALLED_APPS.index("django.contrib.admin") < settings.INSTALLED_APPS.index(
        "readtrack"
    )
    done = bare_forks.run(
        EARLY, DJANGO_SETTINGS_MODULE="tests.settings", DATABASE_URL="sqlite:///:memory:"
    )
    assert done == (0, "True ['reset_counts', 'mark_unread', 'publish_again']\n")


LOADED = """
import sys
import django
from django.conf import settings
settings.INSTALLED_APPS
by_the_settings = set(sys.modules)  # those of the tests change defaults of a part
django.setup()
OF_EACH_PART = ("apps", "models", "admin")  # which Django loads
parts = lambda: {
    name.split(".")[1]
    for name, module in sys.modules.items()
    if name.startswith("readtrack.")
    and name not in by_the_settings
    and not hasattr(module, "__path__")  # a package has nothing but its docstring
    and not (name.count(".") == 2 and name.split(".")[-1] in OF_EACH_PART)
}
at_setup = parts()
from django.core.wsgi import get_wsgi_application
get_wsgi_application()
import readtrack.urls
import readtrack.templatetags.readtrack
print(*sorted(at_setup))
print(*sorted(parts()))
print(*sorted(name for name in ("celery", "prometheus_client", "tqdm") if name in sys.modules))
"""
# Only the store names Redis, whose package takes longer to import than all of Django's setup.
NOT_AT_SETUP = "store sql reports page flush unread tracker middleware checks operations renames"
NOT_IN_A_WEB_WORKER = "dashboard alerts imports doctor scheduled management operations checks"


def test_a_process_imports_no_part_before_it_is_used(bare_forks: Forks) -> None:
    done = bare_forks.run(
        LOADED, DJANGO_SETTINGS_MODULE="tests.settings", DATABASE_URL="sqlite:///:memory:"
    )
    assert done.code == 0, done.output
    at_setup, in_a_web_worker, packages = done.output.splitlines()
    assert {"admin", "models", "receivers"} <= set(at_setup.split())
    parts = "api digest live numbers"
    never = {*f"{NOT_IN_A_WEB_WORKER} {parts} {NOT_AT_SETUP}".split()}
    assert set(at_setup.split()) & never == set()
    assert {"middleware", "store"} <= set(in_a_web_worker.split())
    assert set(in_a_web_worker.split()) & set(NOT_IN_A_WEB_WORKER.split()) == set()
    assert packages == ""
