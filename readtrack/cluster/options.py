"""The setting CLUSTER: how the keys are divided, and the flush."""

from typing import NamedTuple

from readtrack.conf import cached_setting, conf, with_defaults


class ClusterOptions(NamedTuple):
    """The keys of CLUSTER, their types and their defaults."""

    #: Groups of keys, each on one server of a Redis Cluster: 16 to 1024; 1 for a single server.
    partitions: int = 1
    #: Tasks of Celery or Django that a flush by the schedule is divided into; at most as many as
    #: partitions.
    flush_tasks: int = 1


@cached_setting(maxsize=1)
def cluster_options() -> ClusterOptions:
    """Returns the values of CLUSTER, with defaults for those that the site leaves out."""
    return with_defaults(conf.of_part("CLUSTER"), ClusterOptions)
