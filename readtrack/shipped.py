"""The parts that come with readtrack, by name: for `readtrack.EVERYTHING`, and for hints that tell
which part is missing.

These are only names. Nothing is imported by them, and no installed part is known by them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Shipped(NamedTuple):
    """What belongs to one part."""

    setting: str = ""
    subcommands: Sequence[str] = ()
    tags: Sequence[str] = ()
    forms: Sequence[str] = ()  # of read state, which MODELS names
    model_options: Sequence[str] = ()  # keys of entries of MODELS


# The connection factory for servers of a cluster, which CACHES names.
CLUSTER_FACTORY = "readtrack.cluster.connection.ClusterFactory"
NO_CLUSTER = (
    "a cluster needs 'readtrack.cluster' in INSTALLED_APPS,"
    " and READTRACK['CLUSTER'], such as {'partitions': 64}"
)

# What a site with a schema for each tenant needs.
TENANTS = "readtrack.tenants"

PARTS: Mapping[str, Shipped] = {
    "readtrack.audience": Shipped(),
    "readtrack.front_end": Shipped(setting="FRONT_END"),
    "readtrack.networks": Shipped(setting="NETWORKS"),
    "readtrack.numbers": Shipped(
        setting="NUMBERS",
        subcommands=["note", "daily-view"],
        model_options=["published_field", "publication_notes"],
        tags=["most_viewed", "trending", "views_in", "read_count", "readtrack_panel"],
    ),
    "readtrack.script": Shipped(
        setting="SCRIPT",
        tags=["outbound_url", "readtrack_honeypot", "readtrack_script", "readtrack_text"],
    ),
    "readtrack.threads": Shipped(
        setting="THREADS",
        tags=["first_unread"],
        forms=["positions"],
        model_options=["boards", "is_public"],
    ),
    "readtrack.dashboard": Shipped(),
    "readtrack.digest": Shipped(setting="DIGEST", subcommands=["digest"]),
    "readtrack.api": Shipped(subcommands=["mcp"]),
    "readtrack.alerts": Shipped(setting="ALERTS", subcommands=["alerts"]),
    "readtrack.metrics": Shipped(setting="METRICS", subcommands=["budget"]),
    "readtrack.imports": Shipped(setting="IMPORTS", subcommands=["import"]),
    "readtrack.buffer": Shipped(setting="BUFFER"),
    "readtrack.cluster": Shipped(setting="CLUSTER", subcommands=["repartition"]),
    "readtrack.tenants": Shipped(subcommands=["forget-tenant"]),
    "readtrack.live": Shipped(setting="LIVE", tags=["readtrack_live"]),
    "readtrack.recent": Shipped(setting="RECENT", tags=["recently_viewed"]),
}


def label_of(part: str) -> str:
    """Returns the label of the part's app: `readtrack_numbers` of `readtrack.numbers`."""
    return part.replace(".", "_")


def part_of_setting(name: str) -> str:
    """Returns the part that the setting belongs to; "" if no part has such a setting."""
    return next((part for part, names in PARTS.items() if name and name == names.setting), "")


def part_of_form(name: str) -> str:
    """Returns the part that has a form of read state called `name`; "" if no part has."""
    return next((part for part, names in PARTS.items() if name in names.forms), "")


def part_of_model_option(name: str) -> str:
    """Returns the part that adds the key to entries of MODELS; "" if no part does."""
    return next((part for part, names in PARTS.items() if name in names.model_options), "")


def missing(name: str, part: str) -> str:
    """Returns what a site is told that uses something of a part that it has not installed."""
    return f"`{name}` needs '{part}' in INSTALLED_APPS."
