"""Links that count a stage of a funnel and redirect to a signed URL, also out of the site."""

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

LONGEST_URL = 2048  # characters; Django redirects to no longer URL

_signer = Signer(salt="readtrack.views.outbound")


def link(obj: Model, url: str, *, stage: str) -> str:
    """Returns the path that counts the stage and redirects. Raises ValueError for a stage that FUNNEL lacks."""
    check_stage(stage)
    # Signed without the time, so that pages with the link can be cached.
    return reverse("readtrack:outbound", args=[_signer.sign_object([subject_of(obj), stage, url])])


@never_cache
@require_safe
def follow(request: HttpRequest, signed: str) -> HttpResponse:
    """Redirects to the signed URL; the middleware counts the step."""
    try:
        subject, stage, url = _signer.unsign_object(signed)
    except (BadSignature, ValueError):
        return HttpResponseNotFound(_("This link is not one of ours, or it is incomplete."), content_type="text/plain")
    if not is_web(url):
        return HttpResponseBadRequest(_("This link leads to no web page."), content_type="text/plain")
    recorder = getattr(request, "readtrack", None)
    # A link may outlive the stage it was made for.
    if recorder is not None and request.method == "GET" and stage in conf.FUNNEL:
        recorder.steps[subject, stage] = None
    return HttpResponseRedirect(url, headers={"X-Robots-Tag": "noindex, nofollow"})


def is_web(url: str) -> bool:
    """Returns True if the URL may lead to a page; False for `javascript:` and the like."""
    try:
        url.encode()  # lone surrogates fit into no header
        return len(url) <= LONGEST_URL and urlsplit(url).scheme in {"http", "https", ""}
    except ValueError:
        return False
