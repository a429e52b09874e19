"""Sources: the site of the page that links here, its channel, and the campaign of the link."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.utils.http import is_same_domain

from readtrack.conf import cached_setting, conf

DIRECT = "direct"
INTERNAL = "internal"
MAIL = "mail"
SOCIAL = "social"
OTHER_SITES = "sites"
CHANNELS = (DIRECT, INTERNAL, "search", SOCIAL, MAIL, "assistants", OTHER_SITES)

LONGEST_HOST = 253  # characters, by the rules of DNS; a visitor may send any number
MOST_LABELS = 6  # labels at the end of a host that are looked at
# The end of a host's name that differs by country.
ENDING = re.compile(r"\.(?:(?:com?|org|net)\.)?[a-z]{2,6}$")

# Hosts of one site: for all people, for phones, and those by which social networks send people on.
PART_OF_SITE = re.compile(r"^(?:www|m|mobile)\.(?=[^.]+\.[^.]+)")
PART_OF_NETWORK = re.compile(r"^(?:l|lm|out|away|web)\.(?=[^.]+\.[^.]+)")

# Providers and companies name the pages of their mail so.
MAIL_HOST = re.compile(r"(?:web|e|ex)?mail[0-9]*\.[^.]+\.[^.]+")

LONGEST_QUERY = 2_048  # characters of an address's parameters that are looked at
# Characters of the parts of a campaign. The name of the campaign gets what is left of a value.
LONGEST_SOURCE = 20
LONGEST_MEDIUM = 12
SEPARATOR = " / "  # between the parts of a campaign
# Values of utm_medium, and of utm_source.
MEANS_MAIL = re.compile(r"(?:e[-_ ]?)?mail|newsletter|mailing|digest")
MEANS_SOCIAL = re.compile(r"(?:organic[-_ ]|paid[-_ ])?social(?:[-_ ]?(?:media|network))?|sm")


class Tags(NamedTuple):
    """The parts of a campaign, as the address of a page names them; "" for a missing one."""

    source: str = ""
    medium: str = ""
    campaign: str = ""


NO_TAGS = Tags()


def _channels_by_host() -> dict[str, str]:
    """Returns the channels of the hosts in sources.ini."""
    sections = ConfigParser(interpolation=None)
    path = files("readtrack.hits").joinpath("sources.ini")
    sections.read_string(path.read_text(encoding="utf-8"))
    channels: dict[str, str] = {}
    for channel in sections.sections():
        hosts = sections[channel]["hosts"].split()
        channels.update(dict.fromkeys(hosts, channel))
    return channels


CHANNELS_BY_HOST: Mapping[str, str] = _channels_by_host()


def referrer(request: HttpRequest) -> str:
    """Returns the site of the page that links here, by the name of its host: `news.example`.

    Returns `internal` for a page of this site, `direct` without a referrer, and "" for a referrer
    without a host.
    """
    header: str = request.META.get("HTTP_REFERER", "")
    if not header:
        return DIRECT
    try:
        host = urlsplit(header).hostname or ""
        own_host = urlsplit(f"//{request.get_host()}").hostname or ""
    except (ValueError, DisallowedHost):
        return ""
    host = host.removesuffix(".")[:LONGEST_HOST]
    if host and _is_own(host, own_host):
        return INTERNAL
    return site_of(host)


@lru_cache(maxsize=4096)
def site_of(host: str) -> str:
    """Returns the name under which the hosts of one site are one: `facebook.com` for
    `lm.facebook.com`, and `münchen.example` for `www.xn--mnchen-3ya.example`.
    """
    site = PART_OF_SITE.sub("", host)
    if channel_of_host(host) == SOCIAL:
        site = PART_OF_NETWORK.sub("", site)
    if "xn--" not in site:
        return site
    try:
        return site.encode("ascii").decode("idna")
    except UnicodeError:
        return site


@cached_setting(maxsize=1024)
def _is_own(host: str, own_host: str) -> bool:
    """Returns True for a host of this site: the request's own, with or without `www.`, one of
    OWN_HOSTS, or one to which browsers send the visitor's cookie by COOKIE_DOMAIN.
    """
    if host.removeprefix("www.") == own_host.removeprefix("www."):
        return True
    own_hosts = list(conf.OWN_HOSTS)
    if conf.COOKIE_DOMAIN:
        own_hosts.append("." + conf.COOKIE_DOMAIN.lstrip("."))
    return any(is_same_domain(host, own.lower()) for own in own_hosts)


def channel(request: HttpRequest) -> str:
    """Returns the channel by which the visitor came: one of CHANNELS.

    Returns "" for a referrer without a host. Mail programs and apps send no referrer, so the tags
    of a campaign decide where the referrer says nothing.
    """
    host = referrer(request)
    if host in {INTERNAL, ""}:
        return host
    by_referrer = DIRECT if host == DIRECT else channel_of_host(host)
    if by_referrer in {DIRECT, OTHER_SITES}:
        return _channel_of_tags(tags_of(request)) or by_referrer
    return by_referrer


@lru_cache(maxsize=4096)
def channel_of_host(host: str) -> str:
    """Returns the channel of a host, by the list in sources.ini; OTHER_SITES for an unknown one."""
    without_country = ENDING.sub(".*", host)
    for name in (host, without_country):
        for end in _ends_of(name):
            if end in CHANNELS_BY_HOST:
                return CHANNELS_BY_HOST[end]
    return MAIL if MAIL_HOST.match(host) else OTHER_SITES


def _ends_of(host: str) -> Iterator[str]:
    """Yields the host, and what is left of it without its first labels, the longest first."""
    labels = host.rsplit(".", MOST_LABELS)[-MOST_LABELS:]
    for first in range(len(labels)):
        yield ".".join(labels[first:])


def _channel_of_tags(tags: Tags) -> str:
    """Returns the channel that the tags of a campaign name; "" if they name none."""
    if MEANS_MAIL.fullmatch(tags.medium) or MEANS_MAIL.fullmatch(tags.source):
        return MAIL
    # The source is a host, as ChatGPT writes it, or a name such as "facebook".
    for host in (tags.source, f"{tags.source}.com"):
        channel_of_source = channel_of_host(host)
        if channel_of_source != OTHER_SITES:
            return channel_of_source
    return SOCIAL if MEANS_SOCIAL.fullmatch(tags.medium) else ""


def campaign(request: HttpRequest) -> str:
    """Returns the campaign of the link: `newsletter / email / spring`; "" for a link without one.

    It is made of `utm_source`, or else `ref`, of `utm_medium` and of `utm_campaign`.
    """
    return SEPARATOR.join(filter(None, tags_of(request)))


def tags_of(request: HttpRequest) -> Tags:
    """Returns the tags of a campaign in the address of the page, in small letters."""
    query: str = request.META.get("QUERY_STRING", "")[:LONGEST_QUERY]
    if "utm_" not in query and "ref=" not in query:
        return NO_TAGS
    # Programs that make mails escape addresses once too often: `&amp;utm_medium=email`.
    parameters = dict(parse_qsl(query.replace("&amp;", "&")))
    source = parameters.get("utm_source") or parameters.get("ref", "")
    return Tags(
        _tag(source)[:LONGEST_SOURCE],
        _tag(parameters.get("utm_medium", ""))[:LONGEST_MEDIUM],
        _tag(parameters.get("utm_campaign", "")),
    )


def _tag(value: str) -> str:
    """Returns the value of a parameter as one text, however it was typed and escaped."""
    if "%" in value:  # escaped twice: `spring%2520sale`
        value = unquote(value)
    return unicodedata.normalize("NFC", value).lower().strip()
