"""The command line of the simulated visitors."""

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from threading import Thread

from demo_project.traffic.browser import site
from demo_project.traffic.crowd import Crowd
from demo_project.traffic.visitor import come_and_go


def main(argv: Sequence[str] | None = None) -> int:
    """Runs until SIGINT or SIGTERM (0), or until the server stays away (1)."""
    options = _options(argv)
    crowd = Crowd(options.visitors, options.rate)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    print(f"{crowd.visitors} visitors are browsing {options.url}.", flush=True)
    with suppress(KeyboardInterrupt):
        _open_doors(crowd, options.url)
        crowd.stop.wait()
    crowd.stop.set()
    print(f"Simulated: {crowd}.", flush=True)
    if crowd.is_lost:
        print(f"{options.url} does not answer.", file=sys.stderr)
    return int(crowd.is_lost)


def _open_doors(crowd: Crowd, url: str) -> None:
    # Daemons, so that the end does not wait for a page that is still loading.
    for _ in range(crowd.visitors):
        Thread(target=come_and_go, args=(crowd, url, Random()), daemon=True).start()


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo_project.traffic", description="Sends simulated visitors."
    )
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the site, on this machine")
    parser.add_argument("--visitors", type=int, default=12, help="how many at a time")
    parser.add_argument(
        "--rate", type=float, default=1.5, help="requests per second, of all together"
    )
    options = parser.parse_args(argv)
    try:
        options.url = site(options.url)
    except ValueError as error:
        parser.error(str(error))
    if options.visitors < 1 or options.rate <= 0:
        parser.error("--visitors and --rate have to be positive.")
    return options


if __name__ == "__main__":
    sys.exit(main())
