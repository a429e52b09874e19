"""What several tests of the store start from."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.signals import request_finished

from tests.support.wire import Wire


@pytest.fixture(autouse=True)
def finished_requests() -> Iterator[None]:
    """Takes back what a library connects to the end of each request when a test imports it.

    django-valkey connects a coroutine, and Django's client then cannot end a response that streams.
    """
    receivers = [*request_finished.receivers]
    yield
    request_finished.receivers = receivers
    request_finished.sender_receivers_cache.clear()


@pytest.fixture
def tls(redis_url: str, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Returns a rediss:// URL and its certificate. A relay speaks TLS, because the wheel's server
    cannot.
    """
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    request = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost"
    names = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*request.split(), *names], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    relay = Wire(redis_url, tls=context)
    yield relay.url.replace("redis://", "rediss://"), certificate
    relay.close()
