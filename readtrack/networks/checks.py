"""Checks of the setting NETWORKS."""

from django.core import checks

from readtrack.networks import lookup


def check_entries() -> list[checks.CheckMessage]:
    """Checks that the files and networks of NETWORKS can be used.

    Only warns, because a file may be missing for a moment, and an error would keep `flush` and
    `migrate` from running.
    """
    return [
        checks.Warning(
            f"READTRACK['NETWORKS'] has {entry!r}: {problem}.",
            hint=(
                "Name .mmdb files in 'databases'; AS numbers such as 'AS16509', networks such as"
                " '203.0.113.0/24', and files with networks (JSON, or one a line) in 'doubtful'."
                " Until then the entry is left out."
            ),
            id="readtrack.W070",
        )
        for entry, problem in lookup.problems()
    ]


def check_doubted_share() -> list[checks.CheckMessage]:
    """Checks that the networks of NETWORKS together do not doubt most visitors."""
    return [
        checks.Warning(
            f"READTRACK['NETWORKS'] doubts {share:.0%} of all addresses of {version}.",
            hint=(
                "Their visitors are seen only with signs of a person. Take wide networks such as"
                " '0.0.0.0/1' out of 'doubtful', and look at what the files in it list."
            ),
            id="readtrack.W071",
        )
        for version, share in lookup.doubted_shares().items()
    ]
