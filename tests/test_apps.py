"""The app's registration."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks.registry import registry
from django.core.exceptions import ImproperlyConfigured

from readtrack import models
from readtrack.checks.setup import check_setup
from tests.support.forks import Forks


def test_the_app_has_a_name_for_people_and_registers_its_checks() -> None:
    assert str(apps.get_app_config("readtrack").verbose_name)
    registered: set[Any] = registry.registered_checks
    assert check_setup in registered


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
