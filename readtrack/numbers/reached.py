"""How many of the views of an object or of a period reached each stage."""

from collections.abc import Mapping
from dataclasses import dataclass

from readtrack.hits.stages import STAGES


@dataclass(frozen=True, slots=True)
class Reached:
    """How many views there were, and how many of them reached each stage.

    No number is higher than the one before it.
    """

    views: int
    seen: int  # whose page came to life in a browser
    engaged: int  # with signs of a person
    reads: int

    @classmethod
    def of(cls, views: int, counts: Mapping[str, int]) -> "Reached":
        """Returns how far so many views got. `counts` are those of the hash `reading:…`.

        A view that reached a later stage counts for the earlier ones, too, even if these were not
        stored: a flush may have been killed between them, or the earlier stage is newer than the
        view.
        """
        reached: dict[str, int] = {}
        reached_so_far = 0
        for stage in reversed(STAGES):
            reached_so_far = max(reached_so_far, counts.get(stage, 0))
            reached[stage] = min(reached_so_far, views)  # views may be stored later than stages
        return cls(views, **reached)
