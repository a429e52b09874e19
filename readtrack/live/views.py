"""When the live dots of a page were last published to. The answer is the same for everybody."""

import json

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from readtrack.live import dots
from readtrack.script.public import PublicResponse
from readtrack.store import keys, read_state, scripts
from readtrack.store.circuit import fail_open
from readtrack.views import errors

# A cache may keep the answer for 5 seconds. While it asks for a new one, it gives the old one to
# further tabs, or all that come at this moment would get through.
KEPT = {"Cache-Control": "public, max-age=5, stale-while-revalidate=1"}


@login_not_required
@require_safe
def news(request: HttpRequest) -> HttpResponse:
    """`GET news/?…`: returns the times of the last publications to the live dots with that name.

    It is asked by each open tab, so it looks at nothing of the visitor, and caches answer most.
    """
    # Not as a part of the path, because no part of it may be longer than the name of a file.
    live_dots = dots.parse(request.META.get("QUERY_STRING", ""))
    if live_dots is None or live_dots.prefix != keys.prefix():
        return _not_kept(errors.not_our_page())
    calls = read_state.last_published(live_dots.subjects)
    results = fail_open(scripts.run_all, None, *calls)
    if results is None:  # Redis does not answer
        return _not_kept(errors.unavailable().response)
    published = {subject: time for result in results for subject, time in result.items()}
    content = json.dumps(live_dots.news(published))
    return PublicResponse(content, content_type="application/json", headers=KEPT)


def _not_kept(response: HttpResponse) -> HttpResponse:
    """Returns the response with a header that keeps it out of caches."""
    response["Cache-Control"] = "no-store"
    return response
