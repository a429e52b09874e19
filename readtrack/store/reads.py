"""Read state: one bitmap for each category, one bit for each reader."""

from collections.abc import Sequence

from readtrack import keys
from readtrack.store.scripts import Call

# Longest that a page may take from its first query to its response, in seconds. What was published
# longer ago is on every page that is being recorded now.
NEWS_LIFE = 3600


def has_read(reader: int, tokens: Sequence[str]) -> Call[dict[str, bool]]:
    """Whether the reader has read each category since it was last published to."""

    def decode(bits: list[int]) -> dict[str, bool]:
        return {token: bool(bit) for token, bit in zip(tokens, bits, strict=True)}

    return Call("has_read", [keys.reading(token)[0] for token in tokens], (reader,), decode)


def publish(tokens: Sequence[str]) -> Call[int]:
    """Makes the categories unread for everybody."""
    names = [name for token in tokens for name in keys.reading(token)]
    return Call("publish", names, (NEWS_LIFE,), int)
