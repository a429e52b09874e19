"""The checks of the setting CLUSTER. The core checks the types of its keys."""

from django.core import checks

from readtrack.cluster.options import cluster_options

FEWEST_PARTITIONS = 16
MOST_PARTITIONS = 1024


def check_partitions() -> list[checks.CheckMessage]:
    """Checks that a cluster has enough partitions to share, and not too many to ask."""
    partitions = cluster_options().partitions
    if partitions == 1 or FEWEST_PARTITIONS <= partitions <= MOST_PARTITIONS:
        return []
    return [
        checks.Error(
            f"READTRACK['CLUSTER']['partitions'] is {partitions}.",
            hint=(
                "Give it 1 for a single Redis,"
                " or for a cluster a number from 16 to 1024, such as 64."
            ),
            id="readtrack.E042",
        )
    ]


def check_flush_tasks() -> list[checks.CheckMessage]:
    """Checks that there are tasks, and that each has a partition to flush."""
    partitions, flush_tasks = cluster_options()
    if 1 <= flush_tasks <= partitions or partitions < 1:  # of which E042 tells
        return []
    return [
        checks.Error(
            f"READTRACK['CLUSTER']['flush_tasks'] is {flush_tasks}, and the number of partitions"
            f" {partitions}.",
            hint=f"Give it 1 to {partitions}: each task flushes some of the partitions.",
            id="readtrack.E043",
        )
    ]
