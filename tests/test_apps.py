"""The app's registration."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.checks.registry import registry
from django.core.exceptions import ImproperlyConfigured

from readtrack import models
from readtrack.checks.setup import check_setup


def test_the_app_has_a_name_for_people_and_registers_its_checks() -> None:
    assert str(apps.get_app_config("readtrack").verbose_name)
    registered: set[Any] = registry.registered_checks
    assert check_setup in registered


def test_a_site_that_has_not_installed_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(apps.app_configs, "readtrack")
    with pytest.raises(ImproperlyConfigured, match='add "readtrack" to INSTALLED_APPS'):
        runpy.run_path(str(Path(models.__file__)))
