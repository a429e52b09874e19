"""Runs the benchmarks on servers of its own: `python -m tests.benchmarks [NAME …] [--against REV]`."""

import argparse
import os
import pkgutil
from collections.abc import Sequence
from importlib import import_module

import psycopg

from demo_project.engines.postgres import Postgres
from demo_project.engines.valkey import Valkey
from tests import benchmarks
from tests.benchmarks import against, measuring

NAMES = [
    name.removeprefix("bench_")
    for _, name, _ in pkgutil.iter_modules(benchmarks.__path__)
    if name[:6] == "bench_"
]


def main() -> None:
    """Every benchmark named, or all of them, each a table."""
    parser = argparse.ArgumentParser(
        prog="manage.py benchmark",
        description="Prints how fast readtrack is, next to a peer or the bare limit.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of: {', '.join(NAMES)} (all, if none is named)",
    )
    parser.add_argument(
        "--against",
        metavar="REV",
        help="also runs them on this revision of git, in turns, and prints ratios to it",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        metavar="N",
        help="how often each revision has its turn with --against (%(default)s)",
    )
    options = parser.parse_args()
    names = options.names or NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(
            f"no benchmark is called {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}"
        )
    with Valkey() as valkey, Postgres() as postgres:
        give_memory(postgres)
        os.environ["READTRACK_TEST_REDIS_URL"] = valkey.url
        os.environ["DATABASE_URL"] = postgres.url
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
        os.environ[measuring.SERVERS] = f"{valkey.pid} {postgres.pid}"
        if options.against:
            against.compare_revisions(names, options.against, rounds=options.rounds)
        else:
            run(names)


def run(names: Sequence[str]) -> None:
    """Runs the benchmarks on the servers that the environment names, on an empty database."""
    prepare()
    for name in names:
        import_module(f"tests.benchmarks.bench_{name}").main()
    forget_skips()


def prepare() -> None:
    """Django, on an empty database."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, run_syncdb=True)


def forget_skips() -> None:
    """Leaves nothing to be sent at the end of the process, when the server is gone."""
    from readtrack.store.skips import skip_buffer

    skip_buffer.clear()


def give_memory(postgres: Postgres) -> None:
    """Lets PostgreSQL keep 1 GB of pages: its manual advises a quarter of a server's memory, the
    default is 128 MB.
    """
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET shared_buffers = '1GB'")
    postgres.restart()


if __name__ == "__main__":
    main()
