"""Requests and responses that can be a hit."""

from typing import Any

import pytest

from readtrack.hits.hit import REASONS, refusal
from tests.support.factories import BROWSER


@pytest.mark.parametrize(
    ("method", "status", "headers", "reason"),
    [
        ("get", 200, {}, None),
        ("get", 206, {}, None),
        ("get", 199, {}, "status"),
        ("get", 300, {}, "status"),
        ("get", 304, {}, None),
        ("post", 200, {}, "method"),
        ("head", 200, {}, "method"),
        ("get", 200, {"Sec-Purpose": "prefetch;anonymous-client-ip"}, "prefetch"),
        ("get", 200, {"Purpose": "something else"}, None),
        ("get", 200, {"User-Agent": "Googlebot"}, "bot"),
        ("get", 200, {"Sec-Fetch-Dest": "image", "User-Agent": ""}, "embed"),
        ("get", 200, {"Sec-Fetch-Dest": "image", "Sec-Purpose": "prefetch"}, "prefetch"),
        ("head", 404, {"Sec-Purpose": "prefetch", "User-Agent": ""}, "method"),
    ],
)
def test_an_exchange_is_refused_for_a_reason(
    rf: Any, method: str, status: int, headers: dict[str, str], reason: str | None
) -> None:
    request = getattr(rf, method)("/", headers={"User-Agent": BROWSER, **headers})
    assert refusal(request.method, status, request.META) == reason


def test_every_reason_is_listed() -> None:
    assert {"method", "status", "prefetch", "embed", "bot", "rate", "repeat"} <= set(REASONS)
