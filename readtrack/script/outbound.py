"""Links to other sites that count a stage of a funnel."""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.signing import BadSignature, Signer
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from readtrack import parts
from readtrack.conf import cached_setting, logger
from readtrack.script import tokens
from readtrack.store import keys
from readtrack.subjects import check_stage, subject_of
from readtrack.texts import is_web
from readtrack.views import errors


def outbound_url(obj: Any, url: str, stage: str = "click") -> str:
    """`{% outbound_url post "https://example.com/" stage="click" %}` is a link that counts the
    stage and redirects. Needs `readtrack.urls` in the site's URLconf.
    """
    # Without a saved object there is nothing to count, and the link leads on directly.
    if not (isinstance(obj, Model) and obj.pk is not None):
        return _direct(url)
    check_stage(stage)
    # Signed without the time, so that pages with the link can be cached.
    content = tokens.signed_content([subject_of(obj), stage, url])
    signed = _link_signer().sign_object(content)
    try:
        return reverse("readtrack:outbound", args=[signed])
    except NoReverseMatch:
        _warn_of_no_address()
        return _direct(url)


def _direct(url: str) -> str:
    """Returns the address itself; "" for one that is no web page."""
    return str(url) if is_web(str(url)) else ""


@cached_setting("ROOT_URLCONF")  # once in a process
def _warn_of_no_address() -> None:
    logger.warning(
        "Links of outbound_url lead on directly and count nothing, because the URLconf has no"
        " address for them. Add path('readtrack/', include('readtrack.urls'))."
    )


def _link_signer() -> Signer:
    return Signer(salt=keys.salt("outbound"))


@login_not_required
@never_cache
@require_safe
def follow(request: HttpRequest, signed: str) -> HttpResponse:
    """Redirects to the URL in `signed`, and leaves the step to the middleware, which counts it."""
    try:
        content = _link_signer().unsign_object(signed)
        subject, stage, url = tokens.fields_in(content, what="A link of outbound_url")
    except (BadSignature, TypeError, ValueError):
        return errors.not_our_link()
    if not is_web(url):
        return _no_web_page()
    recorder = getattr(request, "readtrack", None)
    # A link may outlive its stage, because the site has changed the stages since.
    if recorder is not None and request.method == "GET" and stage in parts.stages():
        recorder.steps[subject, stage] = None
    return HttpResponseRedirect(url, headers={"X-Robots-Tag": "noindex, nofollow"})


def _no_web_page() -> HttpResponse:
    message = gettext("This link leads to no web page.")
    return HttpResponse(message, status=400, content_type="text/plain")
