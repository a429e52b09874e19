"""The key of imports in Redis."""

from readtrack.store.keys import DAY, Key


def _never() -> bool:
    return False


position = Key(
    "import:{source}",
    "hash",
    30 * DAY,
    "position of an import, for as long after a batch",
    is_used=_never,  # there are few
)

ROWS = (position,)
