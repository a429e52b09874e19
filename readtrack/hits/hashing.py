"""Keyed digests: short names that say nothing of what they stand for to whoever lacks the key."""

from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import blake2b

from django.conf import settings
from django.utils.encoding import force_bytes

from readtrack.conf import conf


def digest(purpose: str, text: str) -> str:
    """16 URL-safe characters for the text, different for each purpose and key (keyed BLAKE2b, RFC 7693)."""
    key = _key(purpose, force_bytes(conf.SECRET or settings.SECRET_KEY))
    return urlsafe_b64encode(blake2b(text.encode(errors="replace"), key=key, digest_size=12).digest()).decode()


@lru_cache(maxsize=16)
def _key(purpose: str, secret: bytes) -> bytes:
    return blake2b(secret, digest_size=32, person=purpose.encode()).digest()
