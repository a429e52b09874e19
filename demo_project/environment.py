"""The checkout's own environments, made with nothing but the standard library.

One for each Python minor version, `.venv/pyX.Y`, with the versions in constraints.txt, which are
those that the tests have run with. A stamp in it for each extra says for which pyproject.toml and
constraints.txt it was made, so that later starts only compare hashes.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv" / f"py{sys.version_info[0]}.{sys.version_info[1]}"
CONSTRAINTS = "demo_project/constraints.txt"
# Each extra with those that it contains, as in pyproject.toml.
CONTAINED = {
    "demo": ["demo"],
    "test": ["demo", "test"],
    "lint": ["demo", "test", "lint"],
    "docs": ["docs"],
}


def python(home: Path) -> Path:
    """The interpreter of an environment."""
    return home / "bin" / "python"


def stamp(extra: str, *, root: Path = ROOT) -> str:
    """Changes with what has to be installed, and with the folder, for an environment cannot be
    moved.
    """
    files = [(root / name).read_bytes() for name in ("pyproject.toml", CONSTRAINTS)]
    parts = [*files, extra.encode(), bytes(root)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_stamped(home: Path, extra: str) -> bool:
    """Whether this environment was made for the extra as it is now."""
    path = home / f"{extra}.stamp"
    # A dangling interpreter is what an upgraded Python leaves behind.
    return python(home).exists() and path.exists() and path.read_text() == stamp(extra)


def make(extra: str) -> None:
    """Make the environment, or add the extra to it. It keeps the extras that it has."""
    if os.name != "posix":
        sys.exit(f"The servers have no Windows builds. For the rest: pip install -e .[{extra}]")
    with only_one(HOME.parent / "lock"):
        if is_stamped(HOME, extra):  # another process was faster
            return
        print(f"Making the environment .venv/{HOME.name} (once, about 20 s) …", file=sys.stderr)
        start = time.monotonic()
        stamps = list(HOME.glob("*.stamp"))
        extras = {extra, *(path.stem for path in stamps if path.stem in CONTAINED)}
        if not stamps or not python(HOME).exists():
            create()
        for path in stamps:  # until it is whole again, it counts as half made
            path.unlink(missing_ok=True)
        install(sorted(extras))
        for name in extras:
            for contained in CONTAINED[name]:
                (HOME / f"{contained}.stamp").write_text(stamp(contained))
        print(f"Made the environment in {time.monotonic() - start:.1f} s.", file=sys.stderr)


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Hold the lock, which ends with the process at the latest."""
    import fcntl  # not on Windows

    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another process is making the environment; waiting for it …", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def create() -> None:
    """An empty environment, in place of whatever is there."""
    import venv

    if Path(sys.prefix).resolve() == HOME.resolve():
        # To clear it would take the ground from under this very process.
        sys.exit(f"Run this with another Python than {sys.executable}, which it has to make anew.")
    if not has_ensurepip() and not has_outer_pip():
        sys.exit(
            "This Python can make no environment: it has neither ensurepip nor pip 22.3 or newer.\n"
            "On Debian and Ubuntu: apt install python3-venv"
        )
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=has_ensurepip()).create(HOME)


def has_ensurepip() -> bool:
    """Debian without python3-venv ships the module hollowed out, or not at all."""
    try:
        import ensurepip
    except ImportError:
        return False
    return hasattr(ensurepip, "bootstrap")


def has_outer_pip() -> bool:
    """Whether the pip of this Python can install into another environment."""
    command = [sys.executable, "-m", "pip", "--version"]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    return found.returncode == 0 and numbers(found.stdout)[:2] >= [22, 3]


def install(extras: list[str]) -> None:
    """Install the checkout, editable, with the extras."""
    pip = [str(python(HOME)), "-m", "pip"]
    if not list(HOME.glob("lib/*/site-packages/pip")):
        pip = [sys.executable, "-m", "pip", "--python", str(python(HOME))]
    options = ["--quiet", "--disable-pip-version-check", "--constraint", CONSTRAINTS]
    result = subprocess.run(
        [*pip, "install", *options, "--editable", f".[{','.join(extras)}]"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PIP_USER": "0", "PIP_NO_INPUT": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if result.returncode == 0:
        return
    print(*result.stdout.splitlines()[-20:], sep="\n", file=sys.stderr)
    sys.exit(
        "\npip could not install what is needed (above). Is the package index within reach?\n"
        "Proxies and mirrors are set as for any pip: PIP_INDEX_URL, PIP_PROXY or pip.conf."
    )


def numbers(text: str) -> list[int]:
    """A version as something to compare, as far as its leading numbers go."""
    return [int(number) for number in re.findall(r"\d+", text)]
