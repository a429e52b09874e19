"""The app's configuration: what files that tell of addresses add to readtrack."""

from collections.abc import Sequence
from typing import Any

from readtrack.parts import Check, PartConfig


class NetworksConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.networks"]`"""

    name = "readtrack.networks"
    label = "readtrack_networks"
    verbose_name = "Networks"
    setting = "NETWORKS"
    setting_about = (
        "files that tell of a visitor's address: its country, and whether to doubt the visitor"
    )

    def setting_keys(self) -> type[Any]:
        from readtrack.networks.options import NetworksOptions

        return NetworksOptions

    def checks(self) -> Sequence[Check]:
        from readtrack.networks import checks

        return (checks.check_entries, checks.check_doubted_share)
