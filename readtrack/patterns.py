"""Patterns for SCAN: many keys at once, and no others. Glob characters of the prefix stand for themselves."""

from readtrack import keys


def totals() -> str:
    """Matches every total."""
    return _glob("views:total:*")


def unique_sets() -> str:
    """Matches the sets of unique visitors."""
    return _glob("views:unique:*")


def unique_bitmaps() -> str:
    """Matches the bitmaps of unique visitors."""
    return _glob("views:bitmap:*")


def read_state() -> str:
    """Matches the read state of every category."""
    return _glob("category:*")


def family(name: str) -> str:
    """Matches the read state of that family; the families are those of `readers`."""
    return _glob(f"category:*:{name}")


def traces(visitor: str) -> str:
    """Matches every key that is named after the visitor."""
    return _glob(f"*{visitor}*")


def everything() -> str:
    """Matches every key of ours, by its prefix: without one, every key there is."""
    return _glob("*")


def _glob(pattern: str) -> str:
    prefix = "".join(f"\\{char}" if char in "*?[]\\" else char for char in keys.prefix())
    return f"{prefix}{pattern}"
