"""Debian's nginx in front of a site, with a cache of its pages."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from demo_project.engines.process import Child, free_port
from tests.support.waiting import comes_true

CONFIGURATION = """
daemon off; pid nginx.pid; error_log stderr; {user}
events {{ }}
http {{
  access_log off;
  client_body_temp_path temporary; proxy_temp_path temporary; fastcgi_temp_path temporary;
  uwsgi_temp_path temporary; scgi_temp_path temporary;
  proxy_cache_path pages keys_zone=pages:1m;
  server {{
    listen 127.0.0.1:{port};
    {locations}
    location / {{
      proxy_pass {site};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_cache pages;
      proxy_cache_valid 200 10m;
      proxy_cache_lock on;
    }}
  }}
}}
"""


# As docs/howto/live.md has it.
EVENTS = """
    location /events/ {{
      proxy_pass {events};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
"""


@contextmanager
def nginx(site: str, *, events: str = "") -> Iterator[str]:
    """Starts nginx in front of the site, and of the server of its events. Yields its URL. Skips the
    test where there is none, save in CI.
    """
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or ""
    if not program:
        reason = "no nginx on this machine (Debian: apt install nginx-light)"
        pytest.fail(reason) if os.environ.get("READTRACK_CI") else pytest.skip(reason)
    with TemporaryDirectory() as name:
        port, folder = free_port(), Path(name)
        user = "user root;" if os.geteuid() == 0 else ""
        locations = EVENTS.format(events=events) if events else ""
        configuration = CONFIGURATION.format(port=port, site=site, user=user, locations=locations)
        (folder / "nginx.conf").write_text(configuration)
        command = [program, "-p", name, "-c", "nginx.conf", "-e", "stderr"]
        child = Child(command, log=folder / "log", folder=folder)
        try:
            assert comes_true(lambda: _listens(port)), child.last_lines()
            yield f"http://localhost:{port}"
        finally:
            child.stop()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
