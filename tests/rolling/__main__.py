"""Deploys the checkout over an older version, and prints what was done and what is wrong.

The exit status is 1 if something is. `python -m tests.rolling --old COMMIT --seconds 60`.
"""

import argparse
import sys

from tests.rolling.run import Plan, Result, Rolling


def main() -> int:
    """Deploys once, as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.rolling", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, metavar="N", help="60 by default")
    parser.add_argument(
        "--old", default="", metavar="COMMIT", help="by default the last tag of a version"
    )
    options = parser.parse_args()
    result = Rolling(Plan(seconds=options.seconds, old=options.old)).run()
    print(table(result))
    return 0 if result.holds else 1


def table(result: Result) -> str:
    """Returns the result as text."""
    lines = [f"{act:24} {number:>8,}" for act, number in sorted(result.acts.items())]
    lines.append(f"{'views that counted':24} {result.views:>8,}")
    lines += result.problems
    verdict = "all is equal" if result.holds else "THE VERSIONS DO NOT GET ALONG"
    return "\n".join([f"over {result.old}", *lines, verdict])


if __name__ == "__main__":
    sys.exit(main())
