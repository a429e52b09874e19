"""The app's configuration: what a Redis Cluster adds to readtrack."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from readtrack.parts import Check, Division, PartConfig

if TYPE_CHECKING:
    from readtrack.management.subcommands.base import Subcommand


class ClusterConfig(PartConfig):
    """`INSTALLED_APPS += ["readtrack.cluster"]`"""

    name = "readtrack.cluster"
    label = "readtrack_cluster"
    verbose_name = "Redis Cluster"
    setting = "CLUSTER"
    setting_about = "into how many partitions the keys are divided, and into how many tasks a flush"
    scripts = ("move_read_state", "take")

    def setting_keys(self) -> type[Any]:
        from readtrack.cluster.options import ClusterOptions

        return ClusterOptions

    def checks(self) -> Sequence[Check]:
        from readtrack.cluster import checks

        return (checks.check_partitions, checks.check_flush_tasks)

    def subcommands(self) -> "Sequence[Subcommand]":
        from readtrack.cluster.subcommand import Repartition

        return (Repartition(),)

    def division(self) -> Division:
        from readtrack.cluster.dividing import division

        return division()
