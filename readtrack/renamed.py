"""Names that settings had before, and what takes their place.

To rename a setting with a deprecation, give it the new name in conf.py and add an entry to
`RENAMED` here. The old name still works, and a check warns. A name in `REMOVED` is refused; the
check shows the line to write in its place.
"""

from collections.abc import Callable, Mapping
from typing import Any

SiteSettings = Mapping[str, Any]  # the dict READTRACK of a site

# Old name -> new name, which takes the same values.
RENAMED: dict[str, str] = {}


def current_names(site: SiteSettings) -> dict[str, Any]:
    """Returns the site's settings by their current names.

    If the site has both the old and the new name of a setting, the new one counts.
    """
    settings = {RENAMED.get(name, name): value for name, value in site.items()}
    given_by_current_name = {name: site[name] for name in settings if name in site}
    return {**settings, **given_by_current_name}


def replacement(name: str, site: SiteSettings) -> str:
    """Returns a sentence that says what to write in place of the removed setting.

    It has the values of the site.
    """
    advice = REMOVED[name]
    if isinstance(advice, str):
        return advice
    return f"Write {advice(site)} in its place."


def _rate(site: SiteSettings) -> str:
    """Returns the line for RATE_LIMIT and RATE_WINDOW."""
    rate = (site.get("RATE_LIMIT", 5), site.get("RATE_WINDOW", 10))
    return f'"RATE": {rate!r}'


def _history(site: SiteSettings) -> str:
    """Returns the line for HISTORY_DAYS and HISTORY_YEARS."""
    if site.get("HISTORY") is False:
        return '"HISTORY": False alone'
    history = {"days": site.get("HISTORY_DAYS", 90), "years": site.get("HISTORY_YEARS", 0)}
    return f'"HISTORY": {history!r}'


def _proxies(site: SiteSettings) -> str:
    """Returns the line for TRUSTED_PROXIES and PROXY_COUNT."""
    addresses_or_count = site.get("TRUSTED_PROXIES") or site.get("PROXY_COUNT", "auto")
    return f'"PROXIES": {addresses_or_count!r}'


def _models(site: SiteSettings) -> str:
    """Returns the line for COUNTED_MODELS, NEWS_FOR and READ_STATE_MODELS."""
    entries: dict[str, dict[str, Any]] = {}
    for label in _labels(site, "COUNTED_MODELS"):
        entries.setdefault(label, {})["counted"] = True
    for label in _labels(site, "NEWS_FOR"):
        entries.setdefault(label, {})["news_for"] = site["NEWS_FOR"][label]
    for label in _labels(site, "READ_STATE_MODELS"):
        entries.setdefault(label, {})["read_state"] = True
    return f'"MODELS": {entries!r}'


def _labels(site: SiteSettings, name: str) -> list[Any]:
    """Returns the labels of models in an old setting; none if its type is wrong."""
    expected_type = dict if name == "NEWS_FOR" else (list, tuple)
    labels = site.get(name)
    return list(labels) if isinstance(labels, expected_type) else []


# Old name -> a sentence, or a function of the site's settings that returns the line to write.
REMOVED: Mapping[str, str | Callable[[SiteSettings], str]] = {
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
