"""The honeypot: a page behind a link that people do not see. Whoever asks for it is a robot for a day."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from readtrack import buckets, tracker
from readtrack.hits import visitors
from readtrack.hits.hit import is_prefetch
from readtrack.store.circuit import fail_open


@never_cache
@require_safe
def honeypot(request: HttpRequest) -> HttpResponse:
    """Marks the visitor: never a signed-in user, who may have strayed, nor what a browser fetches by itself."""
    if not is_prefetch(request) and _is_visit(request) and visitors.signed_in(request) is None:
        fail_open(tracker.mark_robot, None, _names(request))
    return HttpResponse(status=204, headers={"X-Robots-Tag": "noindex"})


def _is_visit(request: HttpRequest) -> bool:
    """Whether a page of ours led here, as far as a browser says; an image in a comment must not mark its readers."""
    what, whence = (request.headers.get(f"Sec-Fetch-{name}", "") for name in ("Dest", "Site"))
    return what in {"", "document"} and whence in {"", "none", "same-origin"}


def _names(request: HttpRequest) -> set[str]:
    """What the visitor is known by, and will be tomorrow where hashes change with the day."""
    now = buckets.now()
    known = (visitors.known_by(visitors.visitor(request, None, at=at)) for at in (now, now + buckets.DAY))
    return {name for names in known for name in names}
