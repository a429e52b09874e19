"""Tenants of django-tenants: each has its own counts, and a dropped one leaves none to the next."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django_tenants.utils import tenant_context
from redis import Redis

from readtrack import reports
from tests.beside.django_tenants.customers.models import Customer
from tests.site.models import Post
from tests.support.counts import view_times

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def customer() -> Any:
    return made("red")


def made(name: str) -> Any:
    customer = Customer(schema_name=name)
    customer.save(verbosity=0)
    return customer


def viewed_post(customer: Any, times: int) -> None:
    with tenant_context(customer):
        view_times(Post.objects.create(pk=1, title="A"), times)


def counts(customer: Any) -> tuple[int, int]:
    """Returns the views of the tenant's post, as pages show them and as SQL has them."""
    with tenant_context(customer):
        post, _ = Post.objects.get_or_create(pk=1, defaults={"title": "A"})
        return reports.views([post])[post], post.view_count


def dropped(customer: Any, *, force: bool = False) -> None:
    """Deletes the tenant and its schema, as the site does it."""
    if force:
        customer.auto_drop_schema = False
        customer.delete(force_drop=True)
    else:
        customer.delete()


def test_the_settings_of_the_docs_are_all_it_needs() -> None:
    assert [message.id for message in run_checks() if message.id.startswith("readtrack")] == []


@pytest.mark.parametrize("force", [False, True])
def test_a_dropped_tenant_leaves_nothing_for_the_next_of_its_schema(
    redis: Redis, customer: Any, force: bool
) -> None:
    viewed_post(customer, 3)
    assert counts(customer) == (3, 0)
    dropped(customer, force=force)
    assert redis.keys("red:*") == []
    again = made("red")
    assert counts(again) == (0, 0)
    with tenant_context(again):
        call_command("readtrack", "flush", verbosity=0)
    assert counts(again) == (0, 0)
    dropped(again)


def test_a_tenant_whose_schema_stays_keeps_its_counts(customer: Any) -> None:
    viewed_post(customer, 3)
    customer.auto_drop_schema = False
    customer.delete()
    again = made("red")
    assert counts(again) == (3, 0)
    dropped(again)


def test_the_command_forgets_a_tenant_from_outside_of_all_tenants(customer: Any) -> None:
    viewed_post(customer, 3)
    call_command("readtrack", "forget-tenant", "red", verbosity=0)
    assert counts(customer) == (0, 0)
    dropped(customer)


def test_a_flush_of_all_tenants_is_started_with_the_option_by_its_name(customer: Any) -> None:
    """With `"--no-public", "readtrack", "flush"` the option takes "readtrack" for its value, and
    Django's own `flush` empties the tables.
    """
    viewed_post(customer, 3)
    call_command("all_tenants_command", "readtrack", "flush", no_public=True, verbosity=0)
    assert counts(customer) == (3, 3)
    dropped(customer)


def test_a_flush_of_the_public_schema_says_that_it_has_no_tables() -> None:
    with pytest.raises(CommandError, match="migrate"):
        call_command("readtrack", "flush", verbosity=0)
