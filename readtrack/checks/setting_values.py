"""Checks of settings whose values have the right type, but cannot be used."""

import re
from operator import attrgetter

from django.conf import settings
from django.core import checks

from readtrack.conf import DEFAULTS, conf, function_problem, patterns
from readtrack.hits import addresses, exclusions
from readtrack.store import keys

# The seconds by the name of a setting, beyond which it was probably meant in milliseconds.
MOST_SECONDS = {"TIMEOUT": 30, "FLUSH_INTERVAL": 43_200}
# Settings, or keys of settings, with regular expressions, and with paths of functions.
PATTERNS = ("BOTS.more", "BOTS.people")
FUNCTIONS = ("COOKIE.consent", "BOTS.function", "PREFIX", "VIEW_NUMBERS")

COOKIE_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # a token of RFC 6265
# Not the key that Django has for it, which begins with HTTP_ and has underscores.
HEADER_NAME = re.compile(r"(?!HTTP_)[A-Za-z][A-Za-z0-9-]*")
COOKIE_PATH = re.compile(r"/[!-:<-~]*")  # no space, no semicolon, ASCII
COOKIE_DOMAIN = re.compile(r"\.?[a-z0-9-]+(?:\.[a-z0-9-]+)*", re.IGNORECASE | re.ASCII)


def check_seconds() -> list[checks.CheckMessage]:
    """Checks that no time is so long that milliseconds were meant."""
    messages: list[checks.CheckMessage] = []
    for name, most in MOST_SECONDS.items():
        seconds = getattr(conf, name)
        if seconds > most:
            messages.append(seconds_warning(name, seconds, default=DEFAULTS[name]))
    return messages


def seconds_warning(setting: str, seconds: float, *, default: float) -> checks.CheckMessage:
    """Returns the warning that a setting, or a key of one, was probably meant in milliseconds."""
    return checks.Warning(
        f"READTRACK{_place(setting)} is {seconds} seconds, which is very long.",
        hint=(
            f"It is in seconds. If you meant {seconds} milliseconds, write"
            f" {seconds / 1000:g}; the default is {default:g}."
        ),
        id="readtrack.W053",
    )


def _place(setting: str) -> str:
    """Returns the place in READTRACK of a setting, or of a key of one, such as "BOTS.more"."""
    return "".join(f"['{name}']" for name in setting.split("."))


def check_patterns() -> list[checks.CheckMessage]:
    """Checks that patterns are regular expressions."""
    return [
        checks.Error(
            f"READTRACK{_place(name)} has {invalid.pattern!r}, which is no regular expression:"
            f" {invalid.problem}.",
            hint=(
                "Correct it. Escape special characters, as re.escape does."
                " Until then the pattern is ignored."
            ),
            id="readtrack.E020",
        )
        for name in PATTERNS
        for invalid in patterns(name).invalid
    ]


def check_proxies() -> list[checks.CheckMessage]:
    """Checks that the addresses of proxies are addresses or networks."""
    error = addresses.proxies().error
    if not error:
        return []
    return [
        checks.Error(
            f"READTRACK['PROXIES'] cannot be used: {error}",
            hint=(
                "Give addresses such as '10.0.0.1' or networks such as '10.0.0.0/8'."
                " Until then REMOTE_ADDR is used."
            ),
            id="readtrack.E022",
        )
    ]


def check_address_header() -> list[checks.CheckMessage]:
    """Checks that the header with visitors' addresses has a name that a header can have."""
    if HEADER_NAME.fullmatch(conf.ADDRESS_HEADER):
        return []
    return [
        checks.Error(
            f"READTRACK['ADDRESS_HEADER'] is {conf.ADDRESS_HEADER!r},"
            " which cannot be the name of a header.",
            hint="Give the name as the proxy sends it, such as 'X-Forwarded-For' or 'Forwarded'.",
            id="readtrack.E058",
        )
    ]


def check_cookie() -> list[checks.CheckMessage]:
    """Checks that the cookie has a name that browsers take."""
    if COOKIE_NAME.fullmatch(conf.COOKIE.name):
        return []
    return [
        checks.Error(
            f"READTRACK['COOKIE']['name'] is {conf.COOKIE.name!r},"
            " which cannot be the name of a cookie.",
            hint=(
                "Use letters, digits, - and _."
                " To set no cookie at all, use READTRACK['ANONYMOUS'] = 'hash'."
            ),
            id="readtrack.E023",
        )
    ]


def check_cookie_path() -> list[checks.CheckMessage]:
    """Checks that browsers send the cookie with pages of the site."""
    script_name = settings.FORCE_SCRIPT_NAME
    path = conf.COOKIE.path
    is_on_pages = not script_name or f"{script_name}/".startswith(f"{path.rstrip('/')}/")
    if COOKIE_PATH.fullmatch(path) and is_on_pages:
        return []
    return [
        checks.Error(
            f"READTRACK['COOKIE']['path'] is {path!r}, so no page of the site gets the cookie.",
            hint=(
                "Give it the path below which browsers see the site's pages, such as '/shop',"
                " or leave it out for '/'."
            ),
            id="readtrack.E056",
        )
    ]


def check_cookie_domain() -> list[checks.CheckMessage]:
    """Checks that browsers take a cookie of that domain from the site's hosts."""
    domain = conf.COOKIE.domain.lower().lstrip(".")
    if not domain:
        return []
    hosts = [host.lower().lstrip(".") for host in settings.ALLOWED_HOSTS]
    is_of_site = not hosts or "*" in hosts or any(_is_below(host, domain) for host in hosts)
    if COOKIE_DOMAIN.fullmatch(conf.COOKIE.domain) and is_of_site:
        return []
    return [
        checks.Error(
            f"READTRACK['COOKIE']['domain'] is {conf.COOKIE.domain!r},"
            " so browsers refuse the cookie.",
            hint=(
                "Give it a domain without scheme, port and path that the hosts in ALLOWED_HOSTS"
                " are in, or leave it out for the host of each page."
            ),
            id="readtrack.E057",
        )
    ]


def _is_below(host: str, domain: str) -> bool:
    """Returns True if the host is that domain, or is in it."""
    return host == domain or host.endswith(f".{domain}")


def check_exclusions() -> list[checks.CheckMessage]:
    """Checks that each rule of EXCLUDE leaves something out."""
    _, unusable = exclusions.rules()
    return [
        checks.Error(
            f"READTRACK['EXCLUDE'] has {rule!r}: {value!r}, which leaves out nothing.",
            hint=(
                "Give 'staff': True; lists of names in 'groups', of 'app.codename' in"
                " 'permissions', of regular expressions in 'paths', of addresses in 'networks';"
                " in 'function' the path of a function (request); and 'reads': True to leave out"
                " reads as well."
            ),
            id="readtrack.E026",
        )
        for rule, value in unusable
    ]


def check_anonymous_readers() -> list[checks.CheckMessage]:
    """Checks that the readers of DOTS give numbers to anonymous readers, who have no user id."""
    if not conf.DOTS.anonymous or conf.DOTS.readers != "id":
        return []
    return [
        checks.Error(
            "READTRACK['DOTS']['readers'] = 'id' has no numbers for anonymous visitors,"
            " but 'anonymous' gives them dots.",
            hint="Set READTRACK['DOTS']['readers'] to 'auto' or 'ordinal'.",
            id="readtrack.E040",
        )
    ]


def check_functions() -> list[checks.CheckMessage]:
    """Checks that settings name functions that exist."""
    messages: list[checks.CheckMessage] = []
    for name in FUNCTIONS:
        path = attrgetter(name)(conf)
        if not path:
            continue
        if name == "PREFIX" and not keys.PATH.fullmatch(path):
            continue  # the value is the prefix itself
        problem = function_problem(path)
        if problem:
            messages.append(
                checks.Error(
                    f"READTRACK{_place(name)} names '{path}', which is no function: {problem}.",
                    hint=(
                        "Give the path of a function:"
                        " that of BOTS takes a user agent and returns True for a robot;"
                        " VIEW_NUMBERS takes (user, object), where None is the"
                        " whole site, and returns True for those who may see its numbers;"
                        " 'consent' takes (request) and returns True once a cookie may be set,"
                        " until then none is; PREFIX takes nothing and returns the tenant's name,"
                        f" and a prefix that is no path ends with a colon, such as '{path}:'."
                    ),
                    id="readtrack.E041",
                )
            )
    return messages
