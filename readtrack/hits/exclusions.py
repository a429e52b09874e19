"""Exclusions: hits that do not count, because the setting EXCLUDE names them, or because a staff
member followed a link of the admin.
"""

import re
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import Resolver404, resolve
from django.utils import translation
from django.utils.module_loading import import_string
from django.utils.translation import get_language, get_language_from_path

from readtrack.conf import cached_setting, conf, function_problem, says_true
from readtrack.hits import addresses


class Rules(NamedTuple):
    """The rules of the setting EXCLUDE."""

    by_key: dict[str, list[Any]]  # the rules by the keys of EXCLUDE: "staff", "groups" and so on
    problems: list[tuple[str, Any]]  # key and value of each rule that cannot be used


@cached_setting()
def rules() -> Rules:
    """Returns the rules of EXCLUDE."""
    by_key: dict[str, list[Any]] = {
        key: []
        for key in ("staff", "groups", "permissions", "paths", "networks", "function", "reads")
    }
    problems: list[tuple[str, Any]] = []
    for key, given in conf.EXCLUDE.items():
        values = given if isinstance(given, (list, tuple)) else [given]
        for value in values:
            try:
                by_key[key].append(_rule(key, value))
            except (KeyError, ValueError, re.error):
                problems.append((str(key), value))
    return Rules(by_key, problems)


def _rule(key: str, value: Any) -> Any:
    """Returns the value as a rule: a pattern of a path, a network, or the value itself.

    Raises ValueError or re.error for a value that cannot be used.
    """
    if key in {"staff", "reads"}:
        if not isinstance(value, bool):
            raise ValueError(value)
        return value
    if not isinstance(value, str):
        raise ValueError(value)
    if key == "permissions" and "." not in value:
        raise ValueError(value)
    if key == "function" and function_problem(value):
        raise ValueError(value)
    if key == "paths":
        return re.compile(value)
    if key == "networks":
        return addresses.network_with_households(value)
    return value


def is_excluded(request: HttpRequest, user: Any | None) -> bool:
    """Returns True if EXCLUDE names this hit, or if a staff member followed a link of the admin."""
    if getattr(user, "is_staff", False) and _comes_from_admin(request):
        return True
    if not conf.EXCLUDE:
        return False
    # `says_true` keeps errors of the site's function and of the database from the page, which is
    # made already.
    is_excluded_by_rule = partial(_is_excluded_by_rule, request, user)
    return says_true("EXCLUDE", is_excluded_by_rule, otherwise="the hit counts")


def _comes_from_admin(request: HttpRequest) -> bool:
    """Returns True if the referrer is a page of Django's admin."""
    try:
        address = urlsplit(request.META.get("HTTP_REFERER", ""))
    except ValueError:
        return False
    path = _path_of_urlconf(unquote(address.path), request)
    # The address of the link is in the language of its page, which may be another than the present
    # one. Without a language in it, it may be in that of the site.
    languages = [get_language_from_path(path) or get_language(), settings.LANGUAGE_CODE]
    return any(_is_of_admin(path, language) for language in dict.fromkeys(languages))


def _is_of_admin(path: str, language: str | None) -> bool:
    """Returns True if the path, as the URLconf has it in that language, is one of Django's
    admin.
    """
    with translation.override(language), suppress(Resolver404):
        return "admin" in resolve(path).app_names
    return False


def _path_of_urlconf(path: str, request: HttpRequest) -> str:
    """Returns the path as the site's URLconf sees it, without the script name."""
    script_name: str = request.META.get("SCRIPT_NAME", "")
    return path.removeprefix(script_name.rstrip("/"))


def leaves_out_reads() -> bool:
    """Returns True if EXCLUDE says that an excluded hit puts no dot out."""
    return True in rules().by_key["reads"]


def is_excluded_line(path: str, address: str) -> bool:
    """Returns True if EXCLUDE names the path or the address of a line of a log."""
    by_key = rules().by_key
    if any(pattern.search(path) for pattern in by_key["paths"]):
        return True
    client = addresses.network_of(address) if by_key["networks"] else ""
    if not client:
        return False
    return any(ip_address(client) in network for network in by_key["networks"])


def _is_excluded_by_rule(request: HttpRequest, user: Any | None) -> bool:
    """Returns True if any rule of EXCLUDE holds for the request. Raises what a function raises."""
    by_key = rules().by_key
    if user is not None and _is_excluded_user(user):
        return True
    client = ""
    if by_key["networks"]:
        client = addresses.network(*addresses.hops(request.META))
    # Not by `path_info`, because of what a page's script reports only `path` is the page's.
    if is_excluded_line(_path_of_urlconf(request.path, request), client):
        return True
    return any(import_string(function)(request) is True for function in by_key["function"])


def _is_excluded_user(user: Any) -> bool:
    """Returns True if a rule of EXCLUDE holds for the user. Permissions and groups take queries."""
    by_key = rules().by_key
    if True in by_key["staff"] and getattr(user, "is_staff", False):
        return True
    if any(user.has_perm(permission) for permission in by_key["permissions"]):
        return True
    groups = by_key["groups"]
    return bool(groups) and user.groups.filter(name__in=groups).exists()
