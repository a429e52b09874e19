"""A server that speaks TLS in front of another one, with a certificate that nobody has signed."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import pytest


@contextmanager
def tls(upstream: str) -> Iterator[int]:
    """Yields the port on which the upstream (a URL) is to be had by https. Skips the test without
    OpenSSL, save in CI.
    """
    program = shutil.which("openssl") or ""
    if not program:
        reason = "no OpenSSL on this machine (Debian: apt install openssl)"
        pytest.fail(reason) if os.environ.get("READTRACK_CI") else pytest.skip(reason)
    with TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as server:
        key = Path(name, "key.pem")
        certificate = Path(name, "certificate.pem")
        command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        command += ["-subj", "/CN=test", "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        threading.Thread(target=_serve, args=(server, context, upstream), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)  # wakes up the thread that waits for browsers


def _serve(server: socket.socket, context: ssl.SSLContext, upstream: str) -> None:
    with suppress(OSError):  # it is closed at the end
        while True:
            client, _ = server.accept()
            threading.Thread(target=_relay, args=(client, context, upstream), daemon=True).start()


def _relay(client: socket.socket, context: ssl.SSLContext, upstream: str) -> None:
    parts = urlsplit(upstream)
    address = (parts.hostname or "", parts.port or 80)
    with (
        client,
        suppress(OSError),
        context.wrap_socket(client, server_side=True) as browser,
        socket.create_connection(address) as site,
    ):
        answers = threading.Thread(target=_copy, args=(site, browser), daemon=True)
        answers.start()
        _copy(browser, site)
        answers.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
