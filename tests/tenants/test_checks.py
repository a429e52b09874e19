"""Mistakes of sites with a schema for each tenant are found."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.checks.findings import found, the_message


def schema() -> str:
    return "public"


OWN = {"PREFIX": "tests.tenants.test_checks.schema"}


@pytest.mark.parametrize(
    ("tenant_apps", "options", "problem"),
    [
        (["tests.site", "readtrack"], {}, "READTRACK['PREFIX'] names no function"),
        (
            ["tests.site.apps.SiteConfig", "readtrack"],
            {"PREFIX": "site:"},
            "READTRACK['PREFIX'] names no function",
        ),
        (["tests.site"], OWN, "readtrack is not in TENANT_APPS"),
        (["tests.site", "readtrack"], OWN, ""),
        (["django.contrib.sessions"], {}, ""),
        (None, {}, ""),
    ],
)
def test_tenants_that_would_share_their_counts_are_found(
    settings: Settings, tenant_apps: list[str] | None, options: dict[str, Any], problem: str
) -> None:
    settings.READTRACK = options
    assert found() == []
    settings.TENANT_MODEL = "customers.Client"
    if tenant_apps is not None:
        settings.TENANT_APPS = tenant_apps
    assert found() == (["readtrack.E024"] if problem else [])
    if problem:
        message = the_message("readtrack.E024")
        assert message.msg == f"Tenants share their counts, because {problem}."
        assert "schema_name" in str(message.hint)


@pytest.mark.parametrize(
    ("options", "tenant_model"), [(OWN, None), ({}, "customers.Client")], ids=["PREFIX", "model"]
)
def test_a_site_with_tenants_is_told_to_add_the_part(
    settings: Settings, options: dict[str, Any], tenant_model: str | None
) -> None:
    settings.READTRACK = options
    if tenant_model is not None:
        settings.TENANT_MODEL = tenant_model
    settings.TENANT_APPS = []
    assert "readtrack.W066" not in found()
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "readtrack.tenants"]
    assert "Add 'readtrack.tenants'" in str(the_message("readtrack.W066").hint)
