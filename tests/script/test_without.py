"""A site without the part."""

import json

import pytest
from django.test import Client
from pytest_django import Settings

from readtrack import reports
from tests.support import factories
from tests.support.forks import Forks

OF_SCRIPT = ("readtrack.script", "readtrack.live")

WITHOUT = """
import json
import sys
import django
from django.conf import settings

settings.INSTALLED_APPS = [
    name for name in settings.INSTALLED_APPS if name not in ("readtrack.script", "readtrack.live")
]
django.setup()
from django.core.checks import run_checks
from django.template import engines
from readtrack import middleware, urls
from readtrack.store import keys, scripts

engines["django"].from_string("{% load readtrack %}{% view_count post %}")
run_checks()
modules = [name for name in sys.modules if name.startswith("readtrack.script")]
addresses = [pattern.name for pattern in urls.urlpatterns]
rows = [row.pattern for row in keys.every() if row.pattern.startswith(("reading", "robots"))]
print(json.dumps([modules, addresses, "readtrack.script" in scripts._source("record"), rows]))
"""


def test_it_has_no_module_no_address_no_lua_and_no_key_of_the_part(bare_forks: Forks) -> None:
    done = bare_forks.run(
        WITHOUT, DJANGO_SETTINGS_MODULE="tests.settings", DATABASE_URL="sqlite:///:memory:"
    )
    assert done.code == 0, done.output
    modules, addresses, has_lua, rows = json.loads(done.output)
    assert modules == []
    assert set(addresses).isdisjoint({"page", "outbound", "honeypot"})
    assert not has_lua
    assert rows == []


@pytest.mark.django_db
def test_the_server_counts_each_page_that_reaches_it(settings: Settings, client: Client) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app not in OF_SCRIPT]
    post = factories.post()
    headers = {"User-Agent": factories.BROWSER, "Sec-Fetch-Dest": "empty"}
    for _ in range(2):
        client.get(f"/posts/{post.pk}/", headers=headers)
    assert reports.views([post]) == {post: 1}
