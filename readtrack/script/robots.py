"""The honeypot's address. Whoever follows its link is a robot: people do not see the link."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from readtrack import buckets
from readtrack.hits import addresses, hit, visitors
from readtrack.script import keys
from readtrack.script.honeypot import is_current
from readtrack.store import day_keys, scripts
from readtrack.store import keys as core_keys
from readtrack.store.circuit import fail_open
from readtrack.store.scripts import Call

# Robots that are marked in an hour. A limit, because a robot can make up user agents.
ROBOTS = 5_000
VISITS_OF_ADDRESS = 20  # visits of an address in an hour; further ones mark nobody


@login_not_required
@never_cache
@require_safe
def honeypot(request: HttpRequest, name: str = "") -> HttpResponse:
    """Marks the visitor as a robot, unless somebody may have led a person here.

    `name` is the end of the address, which has to be that of today or yesterday. The response is
    always the same.
    """
    # Other hits do not count anyway, and may be those of people, such as a browser's prefetch.
    could_count = hit.refusal("GET", 200, request.META) in {None, "anonymous"}
    is_robot = is_current(name) and could_count and _followed_our_link(request)
    if is_robot and visitors.signed_in(request) is None:
        fail_open(_mark_robot, None, request)
    return HttpResponse(status=204, headers={"X-Robots-Tag": "noindex"})


def _followed_our_link(request: HttpRequest) -> bool:
    """Returns True if the request follows the link in one of this site's pages without a click.

    It is False for an image, for a click and for a link on another site, because anybody could lead
    people here in these ways.
    """
    headers = request.headers
    is_page = headers.get("Sec-Fetch-Dest", "document") == "document"
    if not is_page or headers.get("Accept", "").startswith("image/"):
        return False
    site = headers.get("Sec-Fetch-Site")
    if site == "same-origin":
        # A click is on a link that somebody wrote into a comment. Our link has no size to click on.
        return "Sec-Fetch-User" not in headers
    if site is not None:
        return site == "none"  # the address itself was entered
    # Without these headers it is an old browser, any browser on plain http, or a program.
    try:
        return urlsplit(headers.get("Referer", "")).netloc == request.get_host()
    except (ValueError, DisallowedHost):
        return False


def _mark_robot(request: HttpRequest) -> None:
    """Marks a visitor without a cookie as a robot, by address and browser, today and tomorrow.

    The ids of visitors are hashes that change every day, so each day has its own mark.
    """
    visitor = visitors.visitor(request, None)
    if visitor.kind == "cookie" and not visitor.new_cookie:
        return  # robots keep no cookies, so this is a person who was led here
    now = buckets.now()
    address = visitors.Visitor(_network_id(request), kind="hash")
    visits = visits_of(day_keys.resolve(address, at=now).id)
    if visits > VISITS_OF_ADDRESS:
        return  # or else one robot could mark the browsers of all people with its address
    ids = set()
    for at in (now, now + buckets.DAY):
        visitor_of_day = day_keys.resolve(visitor, at=at)
        ids.update(visitor_of_day.identities)
        # A robot does not send its new cookie back.
        if visitor_of_day.new_cookie:
            ids.discard(visitor_of_day.id)
    mark_robots(ids)


def _network_id(request: HttpRequest) -> str:
    """Returns an id that all browsers at the request's address have in common. It is a hash, so
    that the address is not stored.
    """
    network = addresses.network(*addresses.hops(request.META))
    return visitors.digest("network", network)


def visits_of(address: str) -> int:
    """Counts a visit of an address to the honeypot, and returns its visits of the hour.

    The caller limits them, so that one address does not use up all marks of the hour. Raises
    redis.RedisError.
    """
    key = keys.honeypot_visits(address)
    return scripts.run(Call("rate", [key], (1, keys.honeypot_visits.ttl), int))


def mark_robots(visitor_ids: Iterable[str]) -> None:
    """Marks the visitors with these ids as robots, so that their hits do not count for a day.

    Their rates become `ROBOT`, beyond every limit. After ROBOTS new marks in an hour, divided
    among the partitions, only known robots are marked again. Raises redis.RedisError.
    """
    most_in_partition = max(1, ROBOTS // len(core_keys.tags()))
    arguments = [core_keys.ROBOT, core_keys.DAY, most_in_partition, keys.robots.ttl]
    calls = []
    for tag, ids in core_keys.by_tag(visitor_ids).items():
        key_names = [keys.robots(tag), *map(core_keys.rate, ids)]
        calls.append(Call("readtrack.script/mark_robots", key_names, arguments, int))
    scripts.run_all(*calls)
