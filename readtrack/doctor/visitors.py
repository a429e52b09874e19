"""Examines whether visitors are told apart."""

from collections.abc import Iterator

from readtrack import buckets
from readtrack.doctor.findings import Context, Finding
from readtrack.hits.addresses import NOTICES, Notice
from readtrack.store.skips import skips_by_reason

HINTS: dict[Notice, str] = {
    "forwarded": (
        "Set READTRACK['PROXY_COUNT'] to the number of proxies that add to it, such as 2 for a CDN in front of nginx."
        " If there is no proxy, set it to 0."
    ),
    "one address": (
        "Let the proxy send X-Forwarded-For, and set READTRACK['PROXY_COUNT'] to the number of proxies that add to it."
    ),
}


def addresses(context: Context) -> Iterator[Finding]:
    """Reports what the web processes noticed about the addresses of new visitors."""
    found = skips_by_reason(24, at=buckets.now())
    noticed: list[Notice] = [notice for notice in NOTICES if found[notice]]
    for notice in noticed:
        message = f"In the last 24 hours: {NOTICES[notice]} New visitors with the same browser look like one."
        yield Finding("warning", message, HINTS[notice])
    if not noticed:
        yield Finding("ok", "No sign in the last 24 hours that new visitors share a proxy's address.")
