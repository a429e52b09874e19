"""What `manage.py demo` can be told; read on a bare machine, so standard library only."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass

PREFIX = "readtrack-demo:"  # of every key in a Redis that others use, too


@dataclass(frozen=True, slots=True)
class Options:
    """One run of the demo. A URL that is empty means a server of the demo's own."""

    port: int
    has_traffic: bool
    has_past: bool
    is_sqlite: bool
    database_url: str
    redis_url: str
    lose_after: float | None  # seconds


def parse(words: list[str]) -> Options:
    """Read the command line, and DATABASE_URL."""
    grammar = parser()
    given = grammar.parse_args(words)
    if given.redis and given.lose_redis is not None:
        grammar.error("--lose-redis kills a Valkey of the demo's own, not the Redis of --redis")
    return Options(
        port=given.port,
        has_traffic=not given.no_traffic,
        has_past=not given.no_past,
        is_sqlite=given.database == "sqlite",
        database_url=os.environ.get("DATABASE_URL", ""),
        redis_url=given.redis or "",
        lose_after=given.lose_redis,
    )


def parser() -> argparse.ArgumentParser:
    """The command line's grammar and its help."""
    result = argparse.ArgumentParser(
        prog="manage.py demo",
        description="Run the example site with a real Valkey, PostgreSQL, Celery worker and beat, "
        "and simulated visitors. Nothing has to be installed or configured; Ctrl-C ends it all.",
        epilog="DATABASE_URL=postgresql://… uses a PostgreSQL of your own. The test suite is `manage.py test`.",
    )
    result.add_argument(
        "--port", type=port, default=8000, help="where the site listens (default: 8000)"
    )
    result.add_argument("--no-traffic", action="store_true", help="no simulated visitors")
    result.add_argument("--no-past", action="store_true", help="no year of views before the start")
    result.add_argument(
        "--database",
        choices=["postgres", "sqlite"],
        default="postgres",
        help="where the posts are kept (default: postgres)",
    )
    result.add_argument(
        "--redis",
        metavar="URL",
        nargs="?",
        const=os.environ.get("REDIS_URL", ""),
        type=redis_url,
        help=f"a Redis or Valkey of your own; only keys that start with {PREFIX} are written, and removed. "
        "Without URL it is REDIS_URL of the environment, where other users cannot read a password",
    )
    result.add_argument(
        "--lose-redis",
        metavar="SECONDS",
        type=float,
        nargs="?",
        const=30.0,
        help="kill Valkey once, 30 seconds after the start, and go on with an empty one",
    )
    return result


def redis_url(text: str) -> str:
    """The URL of --redis, which is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("REDIS_URL is not set, so --redis needs a URL")
    return text


def port(text: str) -> int:
    """One that a server can listen on."""
    if not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(
            f"{text} is no port: it has to be a number from 1 to 65535"
        )
    return int(text)
