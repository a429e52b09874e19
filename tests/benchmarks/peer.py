"""django-hitcount 1.3.5 in an environment of its own, for it shares no Django with us; nothing else needs it."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from types import TracebackType

HOME = Path(tempfile.gettempdir()) / f"readtrack-hitcount-{sys.version_info[0]}.{sys.version_info[1]}-{os.getuid()}"
PACKAGES = ["django-hitcount==1.3.5", "Django>=5.2,<6", "psycopg[binary]", "setuptools"]


class Peer:
    """A process that counts a hundred views each time it is asked."""

    def __enter__(self) -> "Peer":
        python = HOME / "bin" / "python"
        if not (HOME / "done").exists():
            print("Making an environment for django-hitcount (once) …", file=sys.stderr)
            venv.create(HOME, with_pip=True, clear=True)
            subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES], check=True)
            (HOME / "done").touch()
        program = Path(__file__).with_name("peer_site.py")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([python, program], stdin=pipe, stdout=pipe, text=True)
        return self

    def one_hundred(self) -> None:
        """A hundred counted views, each by a visitor of its own."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != "100\n":
            raise RuntimeError("django-hitcount did not count.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()
