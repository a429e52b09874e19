"""What several tests of the store start from."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.wire import Wire


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
