"""Unique visitors, by HyperLogLog: within 0.81 %, at most 12 kB a subject (Heule et al., 2013)."""

from collections.abc import Sequence
from typing import Any

from readtrack import keys
from readtrack.store.scripts import Call

Counts = tuple[int, dict[str, tuple[int, int]]]


def visitors(tokens: Sequence[str]) -> Call[dict[str, int]]:
    """How many different visitors each subject had."""

    def decode(counts: list[int]) -> dict[str, int]:
        return dict(zip(tokens, counts, strict=True))

    return Call("visitors", [keys.hll(token) for token in tokens], (), decode)


def snapshot(tokens: Sequence[str]) -> Call[Counts]:
    """How many of the totals there are, and views and visitors of those that have their base, at one moment."""
    total, sketch = keys.total(""), keys.hll("")

    def decode(answer: list[Any]) -> Counts:
        found, views, visitors = answer
        pairs = zip(tokens, views, visitors, strict=True)
        return found, {token: (int(count), others) for token, count, others in pairs if count is not None}

    names = [keys.unbased(), *[total + token for token in tokens], *[sketch + token for token in tokens]]
    return Call("snapshot", names, (len(total),), decode)
