"""A site of Wagtail with an index page, its editors, and what the tests do with its pages."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from readtrack.flush.run import flush
from tests.support import factories

IS_WAGTAIL = "wagtail" in settings.INSTALLED_APPS
# Other runs do not have Wagtail's apps.
collect_ignore_glob = [] if IS_WAGTAIL else ["test_*.py", "site/*"]

if IS_WAGTAIL:
    from wagtail.models import GroupPagePermission, Locale, Page, Site

    from tests.contrib.wagtail.site.models import IndexPage, StoryPage

Publish = Callable[..., Any]
_addresses = cycle(range(1, 255))


@pytest.fixture
def index(db: None) -> "IndexPage":
    """Returns the index page below the home page of the site."""
    Locale.objects.create(language_code="en")
    root = Page.add_root(instance=Page(title="Root"))
    home_page = root.add_child(instance=Page(title="Home"))
    Site.objects.create(hostname="localhost", root_page=home_page, is_default_site=True)
    page: IndexPage = home_page.add_child(instance=IndexPage(title="News", slug="news"))
    return page


@pytest.fixture
def draft(index: "IndexPage") -> Publish:
    """Returns a function that returns a new page that nobody has published."""

    def draft(model: Any = None, *, parent: Any = None, **values: Any) -> Any:
        values.setdefault("title", "A story")
        page = (model or StoryPage)(live=False, **values)
        return (parent or index).add_child(instance=page)

    return draft


@pytest.fixture
def publish(draft: Publish) -> Publish:
    """Returns a function that returns a page that was just published."""

    def publish(model: Any = None, **values: Any) -> Any:
        page = draft(model, **values)
        page.save_revision().publish()
        page.refresh_from_db()
        return page

    return publish


def editor_of(*pages: Any) -> User:
    """Returns an editor of the pages and those below them, who is no staff, and may see numbers."""
    user = factories.user()
    codenames = ["access_admin", "view_numbers"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    group = Group.objects.create(name=f"Editors {user.pk}")
    for page in pages:
        permission = Permission.objects.get(
            codename="change_page", content_type__app_label="wagtailcore"
        )
        GroupPagePermission.objects.create(group=group, page=page, permission=permission)
    user.groups.add(group)
    return user


@pytest.fixture
def editor(index: "IndexPage") -> User:
    """Returns an editor of all pages."""
    return editor_of(index.get_root())


@pytest.fixture
def chief(db: None) -> User:
    """Returns a superuser."""
    return User.objects.create_superuser("chief", password="secret")


def viewed(page: "Page", times: int = 1) -> None:
    """Lets as many visitors view the page."""
    for _ in range(times):
        assert visitor().get(page.url).status_code == 200
    flush()


def visitor() -> Client:
    """Returns the browser of a visitor with an address of its own."""
    return factories.browser(REMOTE_ADDR=f"198.51.100.{next(_addresses)}")
