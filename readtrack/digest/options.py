"""The setting DIGEST: the numbers of the last week or day by mail."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Literal
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.module_loading import import_string

from readtrack.conf import cached_setting, conf, function_problem
from readtrack.numbers.site_address import present_site, site_problem

Every = Literal["day", "week"]

EVERY: Sequence[Every] = ("day", "week")
LINE_BREAK = re.compile(r"[\r\n]")


@dataclass(frozen=True, slots=True)
class DigestOptions:
    """The values of DIGEST, with defaults for those that the site leaves out."""

    every: Every = "week"
    site: str = ""  # such as "https://example.com"; or the path of a function () -> such an address
    name: str = ""  # of the site, such as "The Example"
    sender: str = ""  # the key "from"
    authors: bool = False  # authors get the numbers of their own objects
    users: str = ""  # path of a function () -> users who may get the numbers of the site
    locale: str = ""  # path of a function (user) -> (language, time zone)

    @property
    def title(self) -> str:
        """Returns what mails call the site: its name, or its host, perhaps with a port."""
        return self.name or urlsplit(present_site(self.site)).netloc

    @property
    def find_users(self) -> Callable[[], Iterable[Any]] | None:
        """Returns the site's function that names the users; None without one."""
        return import_string(self.users) if self.users else None

    @property
    def find_locale(self) -> Callable[[Any], tuple[str, str | tzinfo]] | None:
        """Returns the site's function that knows a user's language and time zone, or None."""
        return import_string(self.locale) if self.locale else None


FIELDS: Mapping[str, str] = {
    "every": "every",
    "site": "site",
    "name": "name",
    "from": "sender",
    "authors": "authors",
    "users": "users",
    "locale": "locale",
}


@cached_setting("DEFAULT_FROM_EMAIL")
def digest_options() -> DigestOptions:
    """Returns the options of DIGEST. A check names values that cannot be used."""
    values = {FIELDS[key]: value for key, value in conf.of_part("DIGEST").items() if key in FIELDS}
    options = DigestOptions(**values)
    return DigestOptions(
        every=options.every if options.every in EVERY else "week",
        site=options.site,
        name=options.name,
        sender=options.sender or settings.DEFAULT_FROM_EMAIL,
        authors=options.authors is True,
        users=options.users,
        locale=options.locale,
    )


def digest_problems() -> list[str]:
    """Returns what is wrong with DIGEST, a sentence for each problem."""
    if not conf.of_part("DIGEST"):
        return []
    problems = [f"it has no key {key!r}" for key in conf.of_part("DIGEST") if key not in FIELDS]
    every = conf.of_part("DIGEST").get("every", "week")
    if every not in EVERY:
        problems.append(f"'every' is {every!r}, which is neither 'week' nor 'day'")
    problem = site_problem(conf.of_part("DIGEST").get("site", ""))
    if problem:
        problems.append(problem)
    if not isinstance(conf.of_part("DIGEST").get("authors", False), bool):
        problems.append("'authors' is neither True nor False")
    for key, noun in (("from", "sender"), ("name", "name of a site")):
        text = conf.of_part("DIGEST").get(key, "")
        if not isinstance(text, str) or LINE_BREAK.search(text):
            problems.append(f"'{key}' is {text!r}, which is no {noun}")
    return [*problems, *_problems_of_functions()]


def _problems_of_functions() -> list[str]:
    """Returns what is wrong with the paths of functions, a sentence for each problem."""
    problems = []
    for key in ("users", "locale"):
        path = conf.of_part("DIGEST").get(key, "")
        problem = function_problem(path) if path else ""
        if problem:
            problems.append(f"'{key}' names {path!r}, which is no function: {problem}")
    return problems
