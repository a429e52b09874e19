"""The app's configuration: what the part adds to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from readtrack.parts import PartConfig

if TYPE_CHECKING:
    from readtrack.store.keys import Key


class LikesConfig(PartConfig):
    """`INSTALLED_APPS += ["tests.likes"]`"""

    name = "tests.likes"
    label = "tests_likes"

    def keys(self) -> "Sequence[Key]":
        from tests.likes import keys

        return keys.ROWS
