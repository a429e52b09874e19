"""Other people's apps, each in an environment of its own, for they share no Django with us; nothing
else needs it.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from types import TracebackType

PACKAGES = {"hitcount": "django-hitcount==1.3.5", "machina": "django-machina==1.3.1"}
SHARED = ["Django>=5.2,<6", "psycopg[binary]", "setuptools"]


class Peer:
    """A process running `peer_{name}.py`: it answers each line, once that is done, with a line."""

    def __init__(self, name: str) -> None:
        self._package = PACKAGES[name]
        self._program = Path(__file__).with_name(f"peer_{name}.py")
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        self._home = Path(tempfile.gettempdir()) / f"readtrack-{name}-{version}-{os.getuid()}"

    def __enter__(self) -> "Peer":
        python = self._home / "bin" / "python"
        if not (self._home / "done").exists():
            print(f"Making an environment for {self._package} (once) …", file=sys.stderr)
            venv.create(self._home, with_pip=True, clear=True)
            pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run([*pip, self._package, *SHARED], check=True)
            (self._home / "done").touch()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [python, self._program], stdin=pipe, stdout=pipe, text=True
        )
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def do(self, work: str, *, answer: str) -> None:
        """Has it do that. Raises RuntimeError where it answers anything else."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{work}\n")
        self._process.stdin.flush()
        if (given := self._process.stdout.readline()) != f"{answer}\n":
            raise RuntimeError(f"{self._package} was to {work} {answer}, and said: {given!r}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate()
