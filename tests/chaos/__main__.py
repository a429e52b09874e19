"""Runs chaos and prints the result. The exit status is 1 if a promise was broken."""

import argparse
import sys

from tests.chaos.run import Chaos, Plan, Result


def main() -> int:
    """Runs chaos once, as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    for name in ("seconds", "flushers", "recorders", "importers", "seed"):
        default = Plan._field_defaults[name]
        parser.add_argument(
            f"--{name}",
            type=type(default),
            default=default,
            metavar="N",
            help=f"{default} by default",
        )
    parser.add_argument(
        "--lose-redis",
        action="store_true",
        help="let Redis come back empty or with an old snapshot",
    )
    result = Chaos(Plan(**vars(parser.parse_args()))).run()
    print(table(result))
    return 0 if result.holds else 1


def table(result: Result) -> str:
    """Returns the result as text, a line for each figure."""
    rows = {**result._asdict(), **result.blows}
    del rows["blows"]
    lines = [f"{name:20} {count:>10,}" for name, count in rows.items()]
    return "\n".join([*lines, "every promise held" if result.holds else "A PROMISE WAS BROKEN"])


if __name__ == "__main__":
    sys.exit(main())
