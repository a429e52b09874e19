"""Logs of web servers."""

import gzip
import json
import random
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests.support.factories import BROWSER

START = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
ROBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def line(
    path: str = "/posts/1/",
    *,
    after: float = 0,
    address: str = "192.0.2.1",
    agent: str = BROWSER,
    method: str = "GET",
    status: int = 200,
    start: datetime = START,
) -> str:
    """Returns a line of the combined format, with a time in seconds after the start."""
    at = start + timedelta(seconds=after)
    return f'{address} - - [{at:%d/%b/%Y:%H:%M:%S %z}] "{method} {path} HTTP/1.1" {status} 512 "-" "{agent}"'


def write(path: Path, lines: Iterable[str], *, packed: bool = False) -> str:
    """Writes the lines to a file. Returns its name."""
    data = "".join(f"{text}\n" for text in lines).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return str(path)


def day(pks: list[int], *, lines: int, seed: int = 1, start: datetime = START) -> Iterator[str]:
    """Returns the log of a day: visitors who come back, reload and hurry, robots, errors, and
    noise.
    """
    rng, after = random.Random(seed), 0.0
    for _ in range(lines):
        after += rng.expovariate(1)
        if rng.random() < 0.02:
            yield rng.choice(["", "\x16\x03\x01", '"-" 400', "x" * 300])
            continue
        yield line(
            f"/posts/{rng.choice(pks)}/" if rng.random() < 0.8 else f"/static/{rng.random()}.js",
            after=after,
            address=f"192.0.2.{rng.randrange(60)}",
            agent=ROBOT if rng.random() < 0.1 else BROWSER,
            method="POST" if rng.random() < 0.05 else "GET",
            status=rng.choice([200, 200, 200, 200, 304, 404]),
            start=start,
        )


def nginx(**values: Any) -> str:
    """Returns a line of JSON as nginx is often told to write it."""
    return json.dumps(
        {
            "remote_addr": "192.0.2.1",
            "time_iso8601": "2026-03-01T13:00:00+01:00",
            "request_method": "GET",
            "request_uri": "/posts/1/?page=2",
            "status": 200,
            "http_user_agent": BROWSER,
            **values,
        }
    )
