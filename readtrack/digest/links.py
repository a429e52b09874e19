"""The link in a digest with which its reader stops it, and takes that back.

It is signed, and works without signing in, also in years. Who has a reader's digest has the link,
and can stop and start that digest, and nothing else.
"""

from typing import Any

from django.core.signing import BadSignature, Signer
from django.urls import NoReverseMatch, reverse

from readtrack.store import keys


def stop_path(user: Any) -> str:
    """Returns the path of the page that stops the user's digests; "" if the URLconf has none."""
    try:
        return reverse("readtrack:digest", args=[_signer().sign_object(str(user.pk))])
    except NoReverseMatch:
        return ""


def user_of(signed: str) -> str:
    """Returns the primary key, as text, of the user whose link it is; "" for no link of ours."""
    try:
        return str(_signer().unsign_object(signed))
    except BadSignature:
        return ""


def _signer() -> Signer:
    # It signs objects, which it encodes: a primary key may have a slash.
    return Signer(salt=keys.salt("digest"))
