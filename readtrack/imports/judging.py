"""Judging lines of logs, each by itself: which object it shows to which visitor, or why it cannot
count. What came before a line is for `weblog`.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from readtrack.conf import conf
from readtrack.hits import addresses, exclusions, hit
from readtrack.imports import lines
from readtrack.imports.hosts import Hosts
from readtrack.imports.line import Line, visitor_of
from readtrack.imports.pages import Pages
from readtrack.imports.ports import without_port
from readtrack.imports.rules import Rules

COMMENT = "comment"
OUTSIDE = "outside the times"
OTHER_HOST = "other host"
FAILED = "lookup failed"
BOT = "bot"


class Judged(NamedTuple):
    """What is known of a line by itself."""

    reason: str  # why it cannot count; "" if it can, and if nothing says what its page shows
    at: float | None = None  # when (s since 1970); None for a line without a time within the times
    path: str = ""
    subject: str | None = None  # what the page shows, if the line can count
    address: str = ""  # of the visitor, also of one who is excluded
    names_another: bool = False  # X-Forwarded-For has addresses, but not this one
    is_of_person: bool = False  # it could count, and has no robot's user agent
    detail: str = ""  # the other host, or the error of the look-up
    visitor: str = ""
    same_visitor: str = ""  # the visitor's id by which windows are remembered
    line: Line | None = None


def _refusal_of(method: str, status: int, agent: str | None) -> str:
    """Returns why such a request cannot count; "" if it can."""
    return hit.refusal(method, status, {"HTTP_USER_AGENT": agent}) or ""


def _names_another(forwarded: str, address: str) -> bool:
    """Returns True if X-Forwarded-For has addresses, but not the one that a line counts for."""
    if not forwarded or not conf.PROXIES:  # 0 says that nobody forwards
        return False
    words = [without_port(word.strip()) for word in forwarded.split(",")]
    networks = {addresses.network_of(word) for word in words} - {""}
    return bool(networks) and address not in networks


def _client_of(line: Line) -> str:
    """Returns the address of the client, also behind trusted proxies; "" if the log has none."""
    if line.forwarded:
        return addresses.network(line.address, line.forwarded) or line.address
    return line.address


class Judge:
    """Judges the lines of one file after the other."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.pages = Pages()
        self.hosts = Hosts(rules.hosts)
        self.file = 0  # the number of the file that is judged
        self._has_agents = True  # the lines of the file say the user agent
        self._parse = self.parser()
        self._refusal_of = lru_cache(maxsize=8192)(_refusal_of)

    def parser(self) -> lines.Parser:
        """Returns what parses the lines of a log."""
        return lines.parser(
            self.rules.form,
            dict(self.rules.fields),
            where=self.rules.where,
            is_decoded=self.rules.is_decoded,
        )

    def begin(self, file: int, *, has_agents: bool) -> None:
        """Begins the file with that number. `has_agents` says that its lines have user agents."""
        self.file = file
        self._has_agents = has_agents
        self._parse = self.parser()

    def read_head(self, head: bytes) -> None:
        """Reads the line of the file's head that names the columns."""
        self._parse(head)

    def judge_all(self, texts: Sequence[bytes]) -> list[Judged]:
        """Returns what is known of each line."""
        parsed = [self._line_of(text) for text in texts]
        self.pages.prepare(self._paths_that_can_count(parsed))
        return [self._judged(text, line) for text, line in zip(texts, parsed, strict=True)]

    def _line_of(self, text: bytes) -> Line | None:
        """Returns the line of the log; None for a malformed one."""
        line = self._parse(text)
        if line is None or self._has_agents:
            return line
        return line._replace(agent=None)

    def _paths_that_can_count(self, parsed: Iterable[Line | None]) -> set[str]:
        """Returns the paths of those lines that can count if the path shows an object."""
        paths = set()
        for line in parsed:
            if line is None or line.path in self.pages or self.rules.is_outside(line.at):
                continue
            if not self._refusal_of(line.method, line.status, line.agent):
                paths.add(line.path)
        return paths

    def _judged(self, text: bytes, line: Line | None) -> Judged:
        """Returns what is known of the line; `text` is as the log has it."""
        if line is None:
            return Judged(COMMENT if lines.is_comment(text) else "malformed")
        if self.rules.is_outside(line.at):
            return Judged(OUTSIDE, path=line.path, line=line)
        at = line.at.timestamp()
        if not line.is_visit:
            return Judged("no visit", at, line.path, line=line)
        if line.host and not self.hosts.has(line.host):
            return Judged(OTHER_HOST, at, line.path, detail=line.host, line=line)
        reason = self._refusal_of(line.method, line.status, line.agent)
        if reason:
            return Judged(reason, at, line.path, is_of_person=reason == "agent", line=line)
        return self._visit(line, at)

    def _visit(self, line: Line, at: float) -> Judged:
        """Returns what is known of a line that can count if its page shows an object."""
        page = self.pages.look_up(line.path)
        if page.error:
            return self._of_person(FAILED, line, at, detail=page.error)
        if not page.subject:
            return self._of_person("" if page.subject is None else "no such object", line, at)
        address = _client_of(line)
        if not address:
            return self._of_person("no address", line, at)
        if line.agent is None and not self.rules.count_robots:
            return self._of_person("no agent", line, at)
        reason = ""
        if conf.EXCLUDE and exclusions.is_excluded_line(line.path, address):
            reason = "excluded"
        visitor = visitor_of(address, line.agent or "", at=line.at)
        return Judged(
            reason,
            at,
            line.path,
            page.subject,
            address=address,
            names_another=_names_another(line.forwarded, address),
            is_of_person=True,
            visitor=visitor.id,
            same_visitor=visitor.fallback_id,
            line=line,
        )

    def _of_person(self, reason: str, line: Line, at: float, *, detail: str = "") -> Judged:
        """Returns what is known of a person's line that shows no object, or to nobody known."""
        return Judged(reason, at, line.path, is_of_person=True, detail=detail, line=line)
