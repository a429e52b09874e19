"""Links that count a stage of a funnel and lead on, also out of the site: only to targets that we signed."""

from urllib.parse import urlsplit

from django.core.signing import BadSignature, Signer
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseNotFound, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from readtrack.conf import conf
from readtrack.subjects import check_stage, subject_of

_signer = Signer(salt="readtrack.views.outbound")


def link(obj: Model, url: str, *, stage: str) -> str:
    """The address that counts the stage and redirects to the URL. Raises ValueError for a stage that FUNNEL lacks."""
    check_stage(stage)
    # Without the time: the same link each time, so that pages with it can be cached.
    return reverse("readtrack:outbound", args=[_signer.sign_object([subject_of(obj), stage, url])])


@never_cache
@require_safe
def follow(request: HttpRequest, signed: str) -> HttpResponse:
    """Redirects to the signed target; the middleware counts the step."""
    try:
        subject, stage, url = _signer.unsign_object(signed)
    except (BadSignature, ValueError):
        return HttpResponseNotFound(_("This link is not one of ours, or it is incomplete."), content_type="text/plain")
    if not is_web(url):
        return HttpResponseBadRequest(_("This link leads to no web page."), content_type="text/plain")
    response = HttpResponseRedirect(url)
    response["X-Robots-Tag"] = "noindex, nofollow"
    recorder = getattr(request, "readtrack", None)
    # A link may outlive the stage it was made for.
    if recorder is not None and request.method == "GET" and stage in conf.FUNNEL:
        recorder.steps[subject, stage] = None
    return response


def is_web(url: str) -> bool:
    """Whether the URL may lead to a page, and can run nothing by itself."""
    try:
        url.encode()  # halves of characters fit into no header
        return len(url) <= LONGEST_URL and urlsplit(url).scheme in {"http", "https", ""}
    except ValueError:
        return False


LONGEST_URL = 2048  # Django redirects to none that is longer
