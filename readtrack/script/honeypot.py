"""The honeypot's link, which people do not see. Its address changes every day."""

from datetime import datetime

from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from readtrack import buckets
from readtrack.hits.visitors import digest, earlier_digests
from readtrack.store import keys


def link() -> SafeString:
    """`{% readtrack_honeypot %}` is a link that people do not see. Needs `readtrack.urls` in the
    site's URLconf.

    A page with it may be cached for a day.
    """
    try:
        url = reverse("readtrack:honeypot", args=[_name(buckets.now())])
    except NoReverseMatch:
        hint = "<!-- readtrack_honeypot: include readtrack.urls in the URLconf -->"
        return SafeString(hint if settings.DEBUG else "")
    # Without text it needs no style: a content security policy may forbid that, and robots look
    # for it.
    return format_html('<a href="{}" rel="nofollow" aria-hidden="true" tabindex="-1"></a>', url)


def is_current(name: str) -> bool:
    """Returns True for the end of the address of today, or yesterday: pages may be cached."""
    now = buckets.now()
    days = (buckets.day_bucket(now), buckets.day_bucket(now - buckets.DAY))
    salt = keys.salt("honeypot")
    return any(name in {digest(salt, day), *earlier_digests(salt, day)} for day in days)


def _name(at: datetime) -> str:
    """Returns the end of the address of that day. It does not look like that of a honeypot."""
    return digest(keys.salt("honeypot"), buckets.day_bucket(at))
