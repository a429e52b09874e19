"""The last hits and what became of each, for the line at the foot of every page."""

from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from readtrack.hits.visitors import cookie_name
from readtrack.numbers.tables import REASONS

SHOWN = 6
LEFT = "left to the script"
READ = "really read"
WORDS = {
    "counted": "counted",
    "read": "dot put out",
    "step": "a step of its funnel",
    LEFT: "left to the page's script",
}


class JudgedHit(NamedTuple):
    """A hit, in the words of its `X-Readtrack` header."""

    at: datetime
    path: str
    verdict: str
    is_script: bool
    owner: int  # stands for a browser

    @property
    def has_counted(self) -> bool:
        return "counted" in self.verdict

    @property
    def is_known(self) -> bool:
        """Returns True for a script's hit that counts nothing beyond what the server has judged a
        moment before.
        """
        before = next((hit for hit in tuple(judged_hits) if hit.owner == self.owner), self)
        is_judged = before.path == self.path and not before.is_script and before.verdict != LEFT
        return self.is_script and not (self.has_counted or self.verdict == READ) and is_judged

    @property
    def words(self) -> str:
        """The verdict as a sentence's end: `counted, dot put out`."""
        return ", ".join(_words(part) for part in self.verdict.split(", "))


# In the memory of the one process that serves the demo, so that it still tells while Redis is gone.
judged_hits: deque[JudgedHit] = deque(maxlen=500)


def noting_hits(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware outside of readtrack's, whose header it notes."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        recorder = request.readtrack  # type: ignore[attr-defined]
        report = recorder.report
        reading = report.part_record if report else None
        verdict = response.headers.get("X-Readtrack", "")
        if not verdict and reading and reading.is_read:
            verdict = READ
        if verdict:
            is_script = report is not None
            # The path of a script's hit is that of its page.
            hit = JudgedHit(
                timezone.now(), request.path, verdict, is_script, _owner(request, response)
            )
            if not hit.is_known:
                judged_hits.appendleft(hit)
        return response

    return middleware


@never_cache
def hits(request: HttpRequest) -> HttpResponse:
    """The last hits, of this browser and of all."""
    owner = _owner(request)
    known = tuple(judged_hits)  # because other threads add to it
    yours = [hit for hit in known if owner and hit.owner == owner][:SHOWN]
    return render(request, "blog/hits.html", {"yours": yours, "all": known[:SHOWN]})


def _owner(request: HttpRequest, response: HttpResponse | None = None) -> int:
    """Stands for the browser, by the cookie of who is signed in or of an anonymous visitor; 0
    without one.
    """
    given: Any = response and response.cookies.get(cookie_name(request))
    cookies = request.COOKIES
    return hash(
        cookies.get(settings.SESSION_COOKIE_NAME)
        or (given and given.value)
        or cookies.get(cookie_name(request))
        or 0
    )


def _words(part: str) -> str:
    verdict, _, details = part.partition("; ")
    if verdict == "skipped":
        return f"not counted: {REASONS[details.removeprefix('reason=').partition(';')[0]]}"  # type: ignore[index]
    return WORDS.get(verdict, verdict)
