"""An answer has the numbers of the tenant that is asked."""

from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from readtrack.flush.run import flush
from tests.api.conftest import API, editor, token_of
from tests.security import test_tenants as tenants
from tests.support import counts, factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _tenants(settings: Settings) -> Iterator[None]:
    settings.READTRACK = {"PREFIX": f"{tenants.__name__}.tenant", "TIMEOUT": 10.0}
    settings.MIDDLEWARE = [f"{tenants.__name__}.TenantMiddleware", *settings.MIDDLEWARE]
    settings.ALLOWED_HOSTS = ["*"]
    tenants.present.name = "red"
    yield
    del tenants.present.name


def test_the_live_numbers_are_those_of_the_host() -> None:
    post = factories.post()
    counts.view(post, post)
    flush()
    headers = token_of(editor())
    people = {}
    for name in ("red", "blue"):
        client = Client(headers={**headers, "Host": f"{name}.example"})
        [row] = client.get(f"{API}now").json()["rows"]
        people[name] = row["now"]
    assert people == {"red": 2, "blue": 0}
