"""A post of a category of its own."""

from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.test.client import ClientHandler

from tests.site.models import Category, Post
from tests.support import factories


@pytest.fixture
def category() -> Category:
    return factories.category()


@pytest.fixture
def post(category: Category) -> Post:
    return factories.post(category=category)


@pytest.fixture(params=["through Django", "before Django"])
def _both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has reports answered by Django's stack, and again by what a site mounts before it."""
    if request.param == "through Django":
        return
    from readtrack.script import collector, reports_by_wsgi

    collector._path.cache_clear()  # type: ignore[attr-defined]
    # As Django's own client does it, because the test is in a transaction.
    monkeypatch.setattr(reports_by_wsgi, "close_old_connections", lambda: None)
    through_django = ClientHandler.__call__

    def before_django(handler: ClientHandler, environ: dict[str, Any]) -> Any:
        # Made for each request, because tests change settings.
        response: Any = reports_by_wsgi.Reports(lambda *_: []).respond(environ)
        if response is None:
            return through_django(handler, environ)
        response.wsgi_request = WSGIRequest(environ)
        return response

    monkeypatch.setattr(ClientHandler, "__call__", before_django)
