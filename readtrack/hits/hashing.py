"""Keyed hashes: short names that reveal nothing to anybody without the key."""

from base64 import urlsafe_b64encode
from hashlib import blake2b

from django.conf import settings
from django.utils.encoding import force_bytes

from readtrack.conf import cached_setting, conf


@cached_setting("SECRET_KEY", maxsize=1024)  # 2 µs for a new text, 0.1 µs for a cached one
def digest(purpose: str, text: str) -> str:
    """Returns 16 URL-safe characters for the text, different for each purpose and key (keyed BLAKE2b, RFC 7693)."""
    secret = force_bytes(conf.SECRET or settings.SECRET_KEY)
    key = blake2b(secret, digest_size=32, person=purpose.encode()).digest()
    return urlsafe_b64encode(blake2b(text.encode(errors="replace"), key=key, digest_size=12).digest()).decode()
