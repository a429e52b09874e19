"""The setting NETWORKS: the files that tell of addresses, and which networks are doubtful."""

from collections.abc import Sequence
from typing import NamedTuple

from readtrack.conf import Path, cached_setting, conf, with_defaults


class NetworksOptions(NamedTuple):
    """The keys of NETWORKS, their types and their defaults."""

    #: Paths of .mmdb files with AS numbers or countries.
    databases: Sequence[Path] = ()
    #: "AS16509", "203.0.113.0/24", paths of lists that operators publish: where programs run, and
    #: seldom people's browsers.
    doubtful: Sequence[Path] = ()


@cached_setting(maxsize=1)
def networks_options() -> NetworksOptions:
    """Returns the values of NETWORKS, with defaults for those that the site leaves out."""
    return with_defaults(conf.of_part("NETWORKS"), NetworksOptions)
