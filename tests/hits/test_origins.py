"""Whose page made a browser send a request."""

from typing import Any

from readtrack.hits import origins


def test_a_host_that_django_refuses_is_nobodys_own() -> None:
    meta: dict[str, Any] = {
        "HTTP_HOST": "no host!",
        "SERVER_NAME": "a.example",
        "SERVER_PORT": "80",
    }
    assert origins.is_foreign({**meta, "HTTP_ORIGIN": "http://a.example"})
