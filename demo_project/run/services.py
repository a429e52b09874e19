"""The processes of the demo site: how each is started, and with which environment."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import redis

from demo_project.engines.engine import Engine
from demo_project.engines.postgres import Postgres
from demo_project.engines.process import Child, ChildError
from demo_project.engines.valkey import Valkey
from demo_project.environment import ROOT
from demo_project.run.options import PREFIX, Options

GRACE = 3.0  # seconds for all of them together; a flush that is killed loses nothing
CELERY = ["celery", "-A", "demo_project"]
# Nobody else is on this broker to gossip with.
WORKER = [*CELERY, "worker", "--loglevel", "WARNING", "--concurrency", "1"]
ALONE = ["--without-gossip", "--without-mingle"]
WEB = ["granian", "--interface", "wsgi", "--host", "127.0.0.1", "--log-level", "warning"]
WEB += ["--workers", "1", "--blocking-threads", "4"]


def clear(url: str) -> None:
    """Remove what a demo has left in a Redis of one's own, and nothing else; fails where nobody
    answers.
    """
    with redis.Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5) as client:
        for name in client.scan_iter(f"{PREFIX}*", count=1000):
            client.unlink(name)


def cleared(url: str) -> str:
    """The URL of a Redis of one's own, once it answers: the site itself would run on without it."""
    try:
        clear(url)
    except (redis.RedisError, ValueError) as error:
        raise ChildError(f"The Redis of --redis does not answer: {error}") from error
    return url


def leave(url: str) -> None:
    """Clear it as far as it is still there."""
    with suppress(redis.RedisError):
        clear(url)


class Services:
    """Everything the demo has started so far, by name, ending with the stack."""

    def __init__(self, options: Options, *, folder: Path, ends: ExitStack) -> None:
        self.folder = folder
        self.engines: dict[str, Engine] = {}
        self.children: dict[str, Child] = {}
        self._ends = ends
        self.redis_url = cleared(options.redis_url) if options.redis_url else self._valkey()
        self.database_url = self._database(options)
        self.own = self._own(options)
        # Temporary files of a process that is killed go with the demo's own.
        self.env = {**os.environ, **self.own, "TMPDIR": str(folder)}
        self.env["PYTHONUNBUFFERED"] = "1"  # the last words of a process that crashes
        if options.redis_url:
            self.env.setdefault(
                "CELERY_BROKER_URL", self.redis_url
            )  # it may have one database only
            ends.callback(leave, self.redis_url)
        else:
            self.env.pop("CELERY_BROKER_URL", None)  # of some other project
        ends.callback(self.stop)  # before the engines, which were entered above

    def finish(self, name: str, *words: str) -> None:
        """Run one management command, with these arguments, to its end."""
        self.start(name, command=["django", name, *words])
        child = self.children[name]
        code = child.wait()
        del self.children[name]
        if code != 0:
            raise ChildError(f"`manage.py {name}` failed:\n{child.last_lines()}")

    def start(self, name: str, *, command: list[str]) -> None:
        """Start one of Python's modules with its arguments, in the background."""
        self.children[name] = Child(
            [sys.executable, "-m", *command],
            log=self.folder / f"{name}.log",
            env=self.env,
            folder=ROOT,
            rubbish=self.folder,
        )

    def stop(self) -> None:
        """End the children; all are told before any is waited for."""
        for child in self.children.values():
            child.send(signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        for child in self.children.values():
            child.end(grace=max(0, deadline - time.monotonic()))

    def beat(self) -> list[str]:
        """Beat keeps its schedule in a file, which would otherwise be left in the checkout."""
        return [*CELERY, "beat", "--loglevel", "WARNING", "-s", str(self.folder / "schedule")]

    def _valkey(self) -> str:
        valkey = Valkey(
            config={"appendonly": "yes"}
        )  # as a real site's, so that the doctor finds nothing
        self.engines["Valkey"] = self._ends.enter_context(valkey)
        return valkey.url

    def _database(self, options: Options) -> str:
        if options.is_sqlite:
            return f"sqlite:///{self.folder / 'demo.sqlite3'}"
        if options.database_url:
            return options.database_url
        postgres = Postgres()
        self.engines["PostgreSQL"] = self._ends.enter_context(postgres)
        return postgres.url

    def _own(self, options: Options) -> dict[str, str]:
        """What a process of this demo has to be told, be it started by us or at another terminal."""
        return {
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "REDIS_PREFIX": PREFIX if options.redis_url else "",
            "SITE_URL": f"http://127.0.0.1:{options.port}",
            "DJANGO_SETTINGS_MODULE": "demo_project.settings",
        }
