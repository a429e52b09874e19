"""A tenant that is gone leaves nothing for the next one of its name."""

import threading
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings
from redis import Redis

from readtrack import reports, tracker
from readtrack.tenants.forgetting import on_tenant_gone
from tests.site.models import Post
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)

present = threading.local()


def tenant() -> str:
    return getattr(present, "name", "public")


@pytest.fixture
def post(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Post:
    """Returns a post that two tenants have views of."""
    settings.READTRACK = {"PREFIX": f"{__name__}.tenant"}
    post = factories.post()
    for name in ("red", "red wine", "public"):
        monkeypatch.setattr(present, "name", name, raising=False)
        assert tracker.record(factories.hit(f"site.post:{post.pk}")).counted
    return post


def views(post: Post, name: str) -> int:
    present.name = name
    return reports.views([post])[post]


def forget(*words: str) -> str:
    return str(call_command("readtrack", "forget-tenant", *words))


def test_the_command_removes_the_keys_of_one_tenant(post: Post, redis: Redis) -> None:
    redis.set("red::1:page", "of the tenant's cache")
    before = len(redis.keys("red:*")) - 1
    assert f"{before} keys" in forget("red", "--dry-run")
    assert views(post, "red") == 1
    assert forget("red") == f"Removed {before} keys of red."
    assert [views(post, name) for name in ("red", "red wine", "public")] == [0, 1, 1]
    assert redis.keys("red:*") == ["red::1:page"]
    assert forget("red") == "Removed 0 keys of red."


def test_the_command_refuses_a_site_without_tenants(settings: Settings) -> None:
    settings.READTRACK = {"PREFIX": "red:"}
    with pytest.raises(CommandError, match="names no function"):
        forget("red")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="has schemas")
def test_the_deletion_of_a_tenant_whose_schema_is_gone_forgets_it(post: Post) -> None:
    for schema, expected in (("public", 1), ("red", 0)):
        gone = SimpleNamespace(schema_name=schema)
        on_tenant_gone(Post, gone, using="default")
        assert views(post, schema) == expected
