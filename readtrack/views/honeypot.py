"""The honeypot: a page behind a link that people do not see. A visitor who requests it is a robot for a day."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from readtrack import buckets
from readtrack.hits import bots, visitors
from readtrack.hits.hit import is_prefetch
from readtrack.store import day_keys
from readtrack.store.circuit import fail_open
from readtrack.store.recording import mark_robots


@never_cache
@require_safe
def honeypot(request: HttpRequest) -> HttpResponse:
    """Marks the visitor as a robot, unless signed in, fetched by a browser itself, or known by its agent."""
    is_known = bots.is_bot(bots.user_agent_of(request))
    if not is_known and not is_prefetch(request.META) and _is_visit(request) and visitors.signed_in(request) is None:
        fail_open(_mark, None, request)
    return HttpResponse(status=204, headers={"X-Robots-Tag": "noindex"})


def _is_visit(request: HttpRequest) -> bool:
    """Returns False for an image or a link on another site, because a comment must not mark its readers as robots."""
    destination, site = (request.headers.get(f"Sec-Fetch-{name}", "") for name in ("Dest", "Site"))
    return destination in {"", "document"} and site in {"", "none", "same-origin"}


def _mark(request: HttpRequest) -> None:
    """Marks the visitor with and without the cookie, today and tomorrow, because hashes change then."""
    seen, now = visitors.visitor(request, None), buckets.now()
    # Not without cookies, where a hash that is the same on every day is never stored.
    ids = {visitors.address_id(request)} if seen.kind == "cookie" else set()
    for at in (now, now + buckets.DAY):
        visitor = day_keys.resolve(seen, at=at)
        ids |= {visitor.fallback_id, "" if visitor.new_cookie else visitor.id}  # a new cookie may never come back
    mark_robots(ids - {""})
