"""The layouts of what readtrack stores and signs, by which two of its versions know whether they
understand each other.

A layout gets the next number only if an older version cannot work with it. What is merely added (a
key, a table, a column that may be empty, a kind of placeholder) needs no number.
"""

from readtrack import __version__

# Keys in Redis and tables in SQL have one number together. A version knows a layout one minor
# version before another one writes it, so that neighbours can run side by side.
WRITTEN = 1  # what this version writes
KNOWN = 1  # the newest one that this version understands

# Tokens of pages, names of live dots, and links of `outbound_url`. The number is signed with them.
SIGNED = 1

# What cookies and placeholders are signed for. The number is their layout: a signature for another
# one is none for this version.
COOKIE = "cookie1"
PLACEHOLDER = "placeholder1"

HINT = (
    "Upgrade readtrack here. Nothing is lost meanwhile: pages go on counting in Redis, and the"
    " flushes of the newer version store that."
)


def sentence(place: str, layout: int) -> str:
    """Returns the sentence about a layout that this version does not know.

    `place` is what has it, such as "Redis has keys".
    """
    return (
        f"{place} of layout {layout}, which a newer version of readtrack wrote. This is readtrack"
        f" {__version__}, which knows layouts up to {KNOWN}, so it changes nothing."
    )
