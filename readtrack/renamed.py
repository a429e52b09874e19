"""Names that settings had before, and what takes their place.

A setting is renamed with a deprecation by its new name in conf.py and an entry of `RENAMED` here:
the old name goes on, and a check warns. `REMOVED` is for a name that is refused, with the line to
write in its place.
"""

from collections.abc import Callable, Mapping
from typing import Any

Own = Mapping[str, Any]  # the site's READTRACK

# Old name -> new name, which takes the same values.
RENAMED: dict[str, str] = {}


def current_names(own: Own) -> dict[str, Any]:
    """Returns the site's settings by their current names. If both names are given, the new one
    counts.
    """
    settings = {RENAMED.get(name, name): value for name, value in own.items()}
    given_by_current_name = {name: own[name] for name in settings if name in own}
    return {**settings, **given_by_current_name}


def replacement(name: str, own: Own) -> str:
    """Returns what a site writes in place of the removed setting, with the site's own values."""
    instead = REMOVED[name]
    return instead if isinstance(instead, str) else f"Write {instead(own)} in its place."


def _rate(own: Own) -> str:
    rate = (own.get("RATE_LIMIT", 5), own.get("RATE_WINDOW", 10))
    return f'"RATE": {rate!r}'


def _history(own: Own) -> str:
    if own.get("HISTORY") is False:
        return '"HISTORY": False alone'
    kept = {"days": own.get("HISTORY_DAYS", 90), "years": own.get("HISTORY_YEARS", 0)}
    return f'"HISTORY": {kept!r}'


def _proxies(own: Own) -> str:
    addresses = own.get("TRUSTED_PROXIES") or own.get("PROXY_COUNT", "auto")
    return f'"PROXIES": {addresses!r}'


def _models(own: Own) -> str:
    entries: dict[str, dict[str, Any]] = {}
    for label in _labels(own, "COUNTED_MODELS"):
        entries.setdefault(label, {})["counted"] = True
    for label in _labels(own, "NEWS_FOR"):
        entries.setdefault(label, {})["news_for"] = own["NEWS_FOR"][label]
    for label in _labels(own, "READ_STATE_MODELS"):
        entries.setdefault(label, {})["read_state"] = True
    return f'"MODELS": {entries!r}'


def _labels(own: Own, name: str) -> list[Any]:
    """Returns the models that an old setting named; none if it had a wrong type."""
    expected = dict if name == "NEWS_FOR" else (list, tuple)
    given = own.get(name)
    return list(given) if isinstance(given, expected) else []


# Old name -> a sentence, or a function of the site's READTRACK that returns the line to write.
REMOVED: Mapping[str, str | Callable[[Own], str]] = {
    "TEST_PREFIX": "Leave it out: keys of tests always begin with 'test:'.",
    "FLUSH_CHUNK": "Leave it out: a flush reads 10,000 totals at once.",
    "FLUSH_RUNS": "Leave it out: the records of 10,000 flushes are kept.",
    "ARCHIVE_EVERY": "Leave it out: a full flush archives all once a day.",
    "ORPHAN_AGE": "Leave it out: the keys of a row that is gone are removed after a day.",
    "RATE_LIMIT": _rate,
    "RATE_WINDOW": _rate,
    "PROXY_COUNT": _proxies,
    "TRUSTED_PROXIES": _proxies,
    "HISTORY_DAYS": _history,
    "HISTORY_YEARS": _history,
    "COUNTED_MODELS": _models,
    "NEWS_FOR": _models,
    "READ_STATE_MODELS": _models,
}
