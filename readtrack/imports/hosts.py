"""The hosts of a log's lines: one server may write the pages of several sites into one log."""

from collections import Counter
from collections.abc import Sequence

from django.conf import settings
from django.utils.http import is_same_domain

from readtrack.doctor.wording import counted
from readtrack.numbers.options import numbers_options

MOST_HOSTS = 1_000  # other hosts that are counted one by one, because visitors may make them up
NAMED_HOSTS = 5  # other hosts that the note names


class Hosts:
    """Tells this site's hosts from others, and counts the lines of these."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        """Takes the names of the site's hosts, by default those of ALLOWED_HOSTS and the
        'own_hosts' of NUMBERS.

        A name such as `.example.com` stands for all hosts below it, too.
        """
        own = names or (
            settings.ALLOWED_HOSTS and [*settings.ALLOWED_HOSTS, *numbers_options().own_hosts]
        )
        # Without names nothing is known, so that all hosts are the site's.
        self._own = [name.lower() for name in own] or ["*"]
        self._known: dict[str, bool] = {}
        self._others: Counter[str] = Counter()  # lines by host
        self._unnamed = 0  # lines of further hosts

    def has(self, host: str) -> bool:
        """Returns True for a host of this site."""
        is_own = self._known.get(host)
        if is_own is None:
            is_own = any(name == "*" or is_same_domain(host, name) for name in self._own)
            if len(self._known) < MOST_HOSTS:
                self._known[host] = is_own
        return is_own

    def count(self, host: str) -> None:
        """Counts a line of another host."""
        if host in self._others or len(self._others) < MOST_HOSTS:
            self._others[host] += 1
        else:
            self._unnamed += 1

    def note(self) -> str:
        """Returns which other hosts have how many lines; "" if there are none."""
        if not self._others:
            return ""
        named = self._others.most_common(NAMED_HOSTS)
        listed = ", ".join(f"{printable(host)} ({lines:,})" for host, lines in named)
        is_longer = len(self._others) > NAMED_HOSTS
        lines = self._others.total() + self._unnamed
        return (
            f"{counted(lines, 'line')} of other hosts did not count: {listed}"
            f"{' and others' if is_longer else ''}. The site's hosts are those of ALLOWED_HOSTS and"
            " the 'own_hosts' of NUMBERS, unless --host names them."
        )


def printable(text: str) -> str:
    """Returns the text without characters that control a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text)
