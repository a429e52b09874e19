"""The app's configuration: what imports add to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from readtrack.parts import Check, PartConfig

if TYPE_CHECKING:
    from readtrack.management.subcommands.base import Subcommand
    from readtrack.store.keys import Key


class ImportsConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.imports"]`"""

    name = "readtrack.imports"
    label = "readtrack_imports"
    verbose_name = _("Imports")
    needs = ("readtrack.numbers",)
    uses = ("readtrack.threads",)
    setting = "IMPORTS"
    scripts = ("apply", "intend", "take_back")
    setting_about = (
        '"views": a dict, for imports that find objects by addresses: a view\'s name ->'
        ' "app.Model" and URL argument, or a function (path, …)'
    )

    def checks(self) -> Sequence[Check]:
        from readtrack.imports import checks

        return (checks.check_setting, checks.check_database)

    def keys(self) -> "Sequence[Key]":
        from readtrack.imports import keys

        return keys.ROWS

    def subcommands(self) -> "Sequence[Subcommand]":
        from readtrack.imports.subcommand import Import

        return (Import(),)

    def subjects_left_out(self) -> frozenset[str]:
        from readtrack.imports import ledger

        return ledger.subjects_of_unfinished_imports()
