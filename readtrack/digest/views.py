"""The page with which a reader stops the digest and takes that back, and its preview in the
admin.
"""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from readtrack.conf import conf
from readtrack.digest import links, records
from readtrack.digest.options import digest_options
from readtrack.views import errors

HEADERS = {
    # Nothing of another site, so that the address, which is a key, leaks nowhere.
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
}


@login_not_required
@never_cache
@csrf_exempt  # a mail program sends the POST (RFC 8058); the address itself is the key
@require_http_methods(["GET", "HEAD", "POST"])
def stop(request: HttpRequest, signed: str) -> HttpResponse:
    """Shows a button that stops the digest, and stops it by POST; `start` takes that back.

    GET changes nothing, because programs that examine mails follow their links.
    """
    user = links.user_of(signed)
    if not user:
        return errors.not_our_link()
    is_post = request.method == "POST"
    if is_post:
        records.set_stopped(user, is_stopped="start" not in request.POST)
    is_stopped = records.has_stopped(user)
    context: dict[str, Any] = {
        "language": translation.get_language(),
        "direction": "rtl" if translation.get_language_bidi() else "ltr",
        "title": _("Numbers of %(author)s") % {"author": digest_options().title},
        "sentence": _sentence(is_stopped=is_stopped, is_post=is_post),
        "is_stopped": is_stopped,
    }
    response = render(request, "readtrack/digest/stop.html", context)
    for name, value in HEADERS.items():
        response[name] = value
    return response


def _sentence(*, is_stopped: bool, is_post: bool) -> str:
    """Returns what the page says to the reader."""
    if is_stopped:
        return _("You get no more mails with these numbers.")
    if is_post:
        return _("You get the mails with these numbers again.")
    return _("Do you want no more mails with these numbers?")


def preview(request: HttpRequest) -> HttpResponse:
    """Returns the digest of the last period for the user, as the mail shows it.

    It is for the admin, which has signed the user in. Raises Http404 on a site without digests, and
    PermissionDenied for a user who gets none.
    """
    if not conf.of_part("DIGEST"):
        raise Http404
    from readtrack.digest import sending  # which only this view needs of what web workers load

    html = sending.preview(request.user)
    if html is None:
        raise PermissionDenied
    # The mail has inline styles, which the site's own policy may forbid.
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    return HttpResponse(html, headers={"Content-Security-Policy": policy})
