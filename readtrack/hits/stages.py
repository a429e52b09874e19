"""Stages of a view: it was seen, a person engaged with the page, the text was read.

The parts that count stages, and those that show them, have these names in common.
"""

from collections.abc import Mapping
from typing import NamedTuple

# Seconds of engagement that are counted. A view that has reached a bin has reached all lower bins.
BINS = (5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1000, 1500)
# Fields of the hash `reading:…` beside the bins: stages of a view, each of which is some of the
# one before it: the page came to life in a browser, signs of a person came, the text was read.
SEEN = "seen"
ENGAGED = "engaged"
READ = "read"


class Stages(NamedTuple):
    """How many views there were, and how many of them reached each stage.

    No number is higher than the one before it.
    """

    views: int
    seen: int  # whose page came to life in a browser
    engaged: int  # with signs of a person
    reads: int

    @classmethod
    def of(cls, views: int, counts: Mapping[str, int]) -> "Stages":
        """Returns the stages of so many views. `counts` are those of the hash `reading:…`.

        A flush that was killed may have stored a later stage only, which stands for the earlier
        ones.
        """
        reads = counts.get(READ, 0)
        engaged = max(counts.get(ENGAGED, 0), reads)
        seen = max(counts.get(SEEN, 0), engaged)
        return cls(views, min(seen, views), min(engaged, views), min(reads, views))
