"""The link in a digest with which its reader stops it, and takes that back.

It is signed, and works without signing in, also in years. Who has a reader's digest has the link,
and can stop and start that digest, and nothing else.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.signing import BadSignature, Signer
from django.urls import NoReverseMatch, reverse

from readtrack.sql import databases
from readtrack.store import keys
from readtrack.subjects import NO_VALUE


def stop_path(user: Any) -> str:
    """Returns the path of the page that stops the user's digests; "" if the URLconf has none."""
    try:
        return reverse("readtrack:digest", args=[_signer().sign_object(str(user.pk))])
    except NoReverseMatch:
        return ""


def user_of(signed: str) -> str:
    """Returns the primary key, as text, of the user whose link it is; "" for no link of ours, and
    for a user who is gone.
    """
    try:
        pk = str(_signer().unsign_object(signed))
    except BadSignature:
        return ""
    return pk if _exists(pk) else ""


def _exists(pk: str) -> bool:
    """Returns True if there is a user with the primary key `pk`, active or not."""
    model = get_user_model()
    try:
        return model._base_manager.using(databases.of(model).alias).filter(pk=pk).exists()
    except NO_VALUE:  # the site has another model of users since
        return False


def _signer() -> Signer:
    # It signs objects, which it encodes: a primary key may have a slash.
    return Signer(salt=keys.salt("digest"))
