"""The honeypot's address: who follows its link is a robot."""

from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from readtrack import buckets
from readtrack.hits import hit, visitors
from readtrack.page.honeypot import is_current
from readtrack.store import day_keys, recording
from readtrack.store.circuit import fail_open


@login_not_required
@never_cache
@require_safe
def honeypot(request: HttpRequest, name: str = "") -> HttpResponse:
    """Marks the visitor as a robot if this is the address of today or yesterday, and no person can
    have been led here. Always answers the same.
    """
    could_count = hit.refusal("GET", 200, request.META) in {None, "anonymous"}
    is_robot = is_current(name) and could_count and _followed_our_link(request)
    if is_robot and visitors.signed_in(request) is None:
        fail_open(_mark_robot, None, request)
    return HttpResponse(status=204, headers={"X-Robots-Tag": "noindex"})


def _followed_our_link(request: HttpRequest) -> bool:
    """Returns False for an image, for a click, and for a link on another site: by these, anybody
    could lead people here.
    """
    headers = request.headers
    is_page = headers.get("Sec-Fetch-Dest", "document") == "document"
    if not is_page or headers.get("Accept", "").startswith("image/"):
        return False
    site = headers.get("Sec-Fetch-Site")
    if site == "same-origin":
        # A person clicks on a link that somebody wrote into a comment. Ours has no size.
        return "Sec-Fetch-User" not in headers
    if site is not None:
        return site == "none"
    # An old browser, any browser on plain http, or a program.
    try:
        return urlsplit(headers.get("Referer", "")).netloc == request.get_host()
    except ValueError:
        return False


def _mark_robot(request: HttpRequest) -> None:
    """Marks a visitor without a cookie, by address and browser: today, and tomorrow, because the
    hashes of visitors by the day change then.
    """
    visitor = visitors.visitor(request, None)
    if visitor.kind == "cookie" and not visitor.new_cookie:
        return  # a person may be led here once, and robots keep no cookies
    now = buckets.now()
    address = visitors.Visitor(visitors.network_id(request), kind="hash")
    visits = recording.honeypot_visits(day_keys.resolve(address, at=now).id)
    if visits > recording.VISITS_OF_ADDRESS:
        return
    ids = set()
    for at in (now, now + buckets.DAY):
        identified = day_keys.resolve(visitor, at=at)
        ids.add(identified.fallback_id)
        if not identified.new_cookie:
            ids.add(identified.id)
    recording.mark_robots(ids - {""})
