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
from readtrack.numbers.options import numbers_options

DIRECT = "direct"
INTERNAL = "internal"
MAIL = "mail"
SOCIAL = "social"
OTHER_SITES = "sites"
CHANNELS = (DIRECT, INTERNAL, "search", SOCIAL, MAIL, "assistants", OTHER_SITES)

LONGEST_HOST = 253  # characters, by the rules of DNS; a visitor may send any number
# Characters of what the caches have as a key. What is longer is computed each time.
LONGEST_ORIGIN = 300
LONGEST_TAGS = 300
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
LONGEST_CAMPAIGN = 256  # of which a stored value has the beginning
SEPARATOR = " / "  # between the parts of a campaign
# The parameters that are tags.
TAGS = ("utm_source=", "utm_medium=", "utm_campaign=", "ref=")
# Values of utm_medium, and of utm_source.
MEANS_MAIL = re.compile(r"(?:e[-_ ]?)?mail|newsletter|mailing|digest")
MEANS_SOCIAL = re.compile(r"(?:organic[-_ ]|paid[-_ ])?social(?:[-_ ]?(?:media|network))?|sm")


class Tags(NamedTuple):
    """The parts of a campaign, as the address of a page names them; "" for a missing one."""

    source: str = ""
    medium: str = ""
    campaign: str = ""


NO_TAGS = Tags()


class Source(NamedTuple):
    """Where a visitor came from, as the dimensions of these names have it.

    `referrer` is the site of the page that links here, by the name of its host (`news.example`):
    `internal` for a page of this site, `direct` without a referrer, and "" for one without a host.
    `channel` is one of CHANNELS, or "" where the referrer is "". `campaign` is that of the link,
    `newsletter / email / spring`, or "": it is made of `utm_source`, or else `ref`, of `utm_medium`
    and of `utm_campaign`.
    """

    referrer: str
    channel: str
    campaign: str = ""


DIRECT_SOURCE = Source(DIRECT, DIRECT)


def _channels_by_host() -> dict[str, str]:
    """Returns the channels of the hosts in sources.ini."""
    sections = ConfigParser(interpolation=None)
    path = files("readtrack.numbers").joinpath("sources.ini")
    sections.read_string(path.read_text(encoding="utf-8"))
    channels: dict[str, str] = {}
    for channel in sections.sections():
        hosts = sections[channel]["hosts"].split()
        channels.update(dict.fromkeys(hosts, channel))
    return channels


CHANNELS_BY_HOST: Mapping[str, str] = _channels_by_host()


def source_of(request: HttpRequest) -> Source:
    """Returns where the visitor came from.

    A request without a referrer and without parameters, as most are, is not parsed at all. What is
    pure is cached: by the beginning of the referrer, and by the parameters that are tags.
    """
    header: str = request.META.get("HTTP_REFERER", "")
    query: str = request.META.get("QUERY_STRING", "")
    tags = _tags_of(query) if query else NO_TAGS
    if not header:
        return DIRECT_SOURCE if tags is NO_TAGS else _with_tags(DIRECT, tags)
    try:
        own_host = request.get_host()
    except DisallowedHost:
        return _with_tags("", tags)
    origin = _origin_of(header)
    if len(origin) > LONGEST_ORIGIN or len(own_host) > LONGEST_ORIGIN:
        return _with_tags(_referrer(origin, own_host), tags)
    return _with_tags(_cached_referrer(origin, own_host), tags)


def _origin_of(header: str) -> str:
    """Returns the referrer without what cannot matter to its host: all from its path on."""
    begin_of_host = header.find("://")
    if begin_of_host < 0:
        return header
    end_of_host = header.find("/", begin_of_host + 3)
    return header if end_of_host < 0 else header[:end_of_host]


def _referrer(origin: str, own_host: str) -> str:
    """Returns the site of the page that links here, by the name of its host: `news.example`.

    Returns `internal` for a page of this site, whose host is `own_host`, and "" for a referrer
    without a host.
    """
    try:
        host = urlsplit(origin).hostname or ""
        own_name = urlsplit(f"//{own_host}").hostname or ""
    except ValueError:
        return ""
    host = host.removesuffix(".")[:LONGEST_HOST]
    if host and _is_own(host, own_name):
        return INTERNAL
    return site_of(host)


_cached_referrer = cached_setting(maxsize=1024)(_referrer)


def _with_tags(site: str, tags: Tags) -> Source:
    """Returns the source of a visitor whom the site sent with the tags of a campaign."""
    if tags is NO_TAGS:
        return Source(site, _channel(site, tags))
    return Source(site, _channel(site, tags), SEPARATOR.join(filter(None, tags)))


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


def _is_own(host: str, own_host: str) -> bool:
    """Returns True for a host of this site: the request's own, with or without `www.`, one of the
    'own_hosts' of NUMBERS, or one to which browsers send the visitor's cookie by its domain.
    """
    if host.removeprefix("www.") == own_host.removeprefix("www."):
        return True
    own_hosts = list(numbers_options().own_hosts)
    if conf.COOKIE.domain:
        own_hosts.append("." + conf.COOKIE.domain.lstrip("."))
    return any(is_same_domain(host, own.lower()) for own in own_hosts)


@lru_cache(maxsize=1024)
def _channel(site: str, tags: Tags) -> str:
    """Returns the channel by which the visitor came: one of CHANNELS.

    Returns "" for a referrer without a host. Mail programs and apps send no referrer, so the tags
    of a campaign decide where the referrer says nothing.
    """
    if site in {INTERNAL, ""}:
        return site
    by_referrer = DIRECT if site == DIRECT else channel_of_host(site)
    if by_referrer in {DIRECT, OTHER_SITES}:
        return _channel_of_tags(tags) or by_referrer
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


def _tags_of(query: str) -> Tags:
    """Returns the tags of a campaign in the parameters of an address, in small letters."""
    query = query[:LONGEST_QUERY]
    if "utm_" not in query and "ref=" not in query:
        return NO_TAGS
    # Programs that make mails escape addresses once too often: `&amp;utm_medium=email`.
    parameters = query.replace("&amp;", "&").split("&")
    # Others are left out before the cache, because they are often new: `fbclid=…`. An escaped name
    # may be that of a tag.
    tagged = "&".join(
        [
            parameter
            for parameter in parameters
            if parameter.startswith(TAGS) or "%" in parameter.partition("=")[0]
        ]
    )
    return _parsed_tags(tagged) if len(tagged) > LONGEST_TAGS else _cached_tags(tagged)


def _parsed_tags(query: str) -> Tags:
    """Returns the tags in the parameters of an address."""
    parameters = dict(parse_qsl(query))
    source = parameters.get("utm_source") or parameters.get("ref", "")
    tags = Tags(
        _tag(source)[:LONGEST_SOURCE],
        _tag(parameters.get("utm_medium", ""))[:LONGEST_MEDIUM],
        _tag(parameters.get("utm_campaign", ""))[:LONGEST_CAMPAIGN],
    )
    return tags if any(tags) else NO_TAGS


_cached_tags = lru_cache(maxsize=1024)(_parsed_tags)


def _tag(value: str) -> str:
    """Returns the value of a parameter as one text, however it was typed and escaped."""
    if "%" in value:  # escaped twice: `spring%2520sale`
        value = unquote(value)
    return unicodedata.normalize("NFC", value).lower().strip()
