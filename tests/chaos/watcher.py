"""Reads the counts in SQL again and again, and notes each count that has decreased."""

import threading
from contextlib import suppress
from typing import NamedTuple

import psycopg


class Decrease(NamedTuple):
    pk: int
    before: int
    after: int


class Watcher(threading.Thread):
    """A thread that reads the counts until `leave` is called."""

    def __init__(self, url: str, *, table: str, every: float = 0.05) -> None:
        super().__init__(daemon=True)
        self.decreases: list[Decrease] = []
        self.looks = 0
        self._url, self._every = url, every
        self._query = f"SELECT id, view_count FROM {table}"
        self._is_leaving = threading.Event()
        self._seen: dict[int, int] = {}

    def run(self) -> None:
        while not self._is_leaving.is_set():
            # The server is stopped every now and then; whoever looks has to knock again.
            with (
                suppress(psycopg.Error),
                psycopg.connect(self._url, autocommit=True, connect_timeout=2) as connection,
            ):
                while not self._is_leaving.wait(self._every):
                    self.look(dict(connection.execute(self._query).fetchall()))
            self._is_leaving.wait(self._every)

    def look(self, stored: dict[int, int]) -> None:
        self.looks += 1
        for pk, count in stored.items():
            before = self._seen.get(pk, 0)
            if count < before:
                self.decreases.append(Decrease(pk, before, count))
        self._seen = stored

    def leave(self) -> None:
        self._is_leaving.set()
        self.join()
