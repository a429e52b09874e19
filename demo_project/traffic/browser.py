"""A small browser: a cookie jar, a user agent, links and forms."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from http.cookiejar import CookieJar
from ipaddress import ip_address
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, OpenerDirector, ProxyHandler, Request, build_opener

TIMEOUT = 5  # seconds
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
SCRIPT = re.compile(r'<script src="([^"]+)"[^>]* data-page="([^"]+)"')
ANSWER = re.compile(r'href="(/live/out/[^"]+)"')
TRAP = re.compile(r'href="(/live/archive/[^"]+)"')
ANSWERED = re.compile(r'name="answer" value="(\d+)"')
TEXT = re.compile(r'data-read="(\d+)"')
OPTION = re.compile(r'<option value="(\d+)"[^>]*>([^<]+)<')


class Page(NamedTuple):
    """What the server answered."""

    status: int
    path: str
    html: str

    def links(self, folder: str) -> list[str]:
        """The pages of a folder (`post`, `category`) that this page links to, each once."""
        return list(dict.fromkeys(re.findall(rf'href="(/{folder}/\d+/)"', self.html)))

    @property
    def answer(self) -> str:
        """The link to the form for an answer, which counts a step of the post's funnel; "" without
        one.
        """
        found = ANSWER.search(self.html)
        return unescape(found[1]) if found else ""

    @property
    def trap(self) -> str:
        """The link to the honeypot, which robots follow; "" without one."""
        found = TRAP.search(self.html)
        return found[1] if found else ""

    @property
    def answered(self) -> str:
        """The number of the post that the form's post will answer, or ""."""
        found = ANSWERED.search(self.html)
        return found[1] if found else ""

    @property
    def seconds(self) -> int:
        """The time that it takes to read the page's text (s); 0 without a text whose reads count."""
        found = TEXT.search(self.html)
        return int(found[1]) if found else 0

    @property
    def options(self) -> dict[str, str]:
        """What the form lets one choose from: values by name."""
        return {unescape(name): value for value, name in OPTION.findall(self.html)}


@dataclass
class Browser:
    """One visitor's browser. Raises OSError when the server cannot be reached."""

    site: str
    user_agent: str
    referrer: str = ""
    address: str = ""  # sent as a proxy on this machine would send it
    came_from: str = ""  # the page before
    country: str = ""  # two letters, sent as such a proxy would send them
    jar: CookieJar = field(default_factory=CookieJar)

    @cached_property
    def _opener(self) -> OpenerDirector:
        # No proxy out of the environment: everything stays on this machine.
        return build_opener(ProxyHandler({}), HTTPCookieProcessor(self.jar))

    def get(self, path: str) -> Page:
        return self._open(path, None)

    def submit(self, form: Page, fields: dict[str, str]) -> Page:
        """Posts the form of a page, with its token, to where it came from."""
        token = TOKEN.search(form.html)
        fields = {"csrfmiddlewaretoken": token[1] if token else "", **fields}
        return self._open(form.path, urlencode(fields).encode())

    def run_script(self, page: Page) -> None:
        """Tells the site that the page is looked at, as readtrack's script does; again where it is
        asked to.
        """
        if found := SCRIPT.search(page.html):
            shown, told = self.referrer, f"{found[2]}\n{self.came_from}".encode()
            if '"again": true' in self._open(found[1], told).html:
                self._open(found[1], told)
            self.referrer = shown

    def tell_reading(self, page: Page, seconds: int) -> None:
        """Tells the site how long the page's text was looked at, and once that is long enough that
        it was read.
        """
        if found := SCRIPT.search(page.html):
            shown, before = self.referrer, self.came_from
            self._open(found[1], f"{found[2]}\n\n{seconds} {seconds >= page.seconds:d}".encode())
            self.referrer, self.came_from = shown, before

    def _open(self, path: str, data: bytes | None) -> Page:
        headers = {"User-Agent": self.user_agent, "Accept": "text/html", "Accept-Language": "en"}
        headers["Upgrade-Insecure-Requests"] = "1"  # as browsers say of each page that they open
        if self.address:
            headers["X-Forwarded-For"] = self.address
        if self.country:
            headers["CF-IPCountry"] = self.country
        if self.referrer:
            headers["Referer"] = self.referrer
        self.came_from, self.referrer = self.referrer, self.site + path
        try:
            response = self._opener.open(Request(self.site + path, data, headers), timeout=TIMEOUT)
        except HTTPError as error:
            response = error  # an answer too, and one with a body
        with response:
            return Page(
                response.status,
                urlsplit(response.url).path,
                response.read().decode(errors="replace"),
            )


def site(url: str) -> str:
    """The URL without its path. Raises ValueError unless it is this very machine's."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not _is_loopback(parts.hostname or ""):
        raise ValueError(
            f"{url} is not on this machine; simulated traffic goes to http://127.0.0.1:PORT only."
        )
    return f"http://{parts.netloc}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
