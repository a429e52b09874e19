"""The app's registration."""

from typing import Any

from django.apps import apps
from django.core.checks.registry import registry

from readtrack.checks.setup import check_setup


def test_the_app_has_a_name_for_people_and_registers_its_checks() -> None:
    assert str(apps.get_app_config("readtrack").verbose_name)
    registered: set[Any] = registry.registered_checks
    assert check_setup in registered
