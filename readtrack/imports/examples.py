"""Lines of a log as they were understood, for a dry run."""

from collections import Counter

from readtrack.imports.hosts import printable
from readtrack.imports.line import Line

MOST = 10  # examples
MOST_OF_A_KIND = 3  # so that a log that begins with images shows its pages, too
LINES_SEARCHED = 20_000  # at the start of the logs
LONGEST = 160  # characters of a value


class Examples:
    """Some lines of a log, of each reason why lines count or do not."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._seen = 0
        self._of_kind: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        """True if no further line is needed."""
        return len(self.texts) >= MOST or self._seen >= LINES_SEARCHED

    def add(self, raw: bytes, line: Line | None, subject: str | None, *, reason: str) -> None:
        """Adds a line, unless there are enough that count or do not count for the same reason."""
        self._seen += 1
        kind = reason or ("counted" if subject else "not resolved")
        if self._of_kind[kind] >= MOST_OF_A_KIND:
            return
        self._of_kind[kind] += 1
        if line is None:
            text = f"{_shown(raw.decode(errors='replace'))}  {kind}"
        else:
            values = [
                f"{line.at:%Y-%m-%d %H:%M:%S} UTC",
                line.host or "(no host)",
                line.address or "(no address)",
                f"{line.method} {line.path}",
                str(line.status),
                subject or "(no object)",
                kind,
            ]
            agent = "(no agent)" if line.agent is None else line.agent
            text = f"{'  '.join(map(_shown, values))}\n    {_shown(agent)}"
        self.texts.append(text)


def _shown(text: str) -> str:
    """Returns the beginning of a text, without characters that control a terminal."""
    return printable(text[:LONGEST])
