"""An environment for each package: the checkout's own, and on top of it what the package asks for."""

import hashlib
import json
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

from demo_project.environment import HOME, python

FOLDER = Path(__file__).parent
REQUIREMENTS = "requirements.txt"
NPM = "package.json"


def names() -> list[str]:
    """Returns the names of the folders that have cases."""
    return sorted(path.parent.name for path in FOLDER.glob("*/cases.py"))


def versions(name: str) -> dict[str, str]:
    """Returns the versions of the packages that a folder names, Python's and npm's."""
    found = {}
    requirements = FOLDER / name / REQUIREMENTS
    if requirements.exists():
        for line in requirements.read_text(encoding="utf-8").splitlines():
            package, _, version = line.partition("==")
            found[package.partition("[")[0]] = version
    npm = FOLDER / name / NPM
    if npm.exists():
        found.update(json.loads(npm.read_text(encoding="utf-8"))["dependencies"])
    return found


def environment(name: str) -> Path:
    """Returns the folder of the environment, which is made anew if the requirements changed."""
    home = HOME.parent / f"beside-{name}-{HOME.name}"
    stamp = home / "beside.stamp"
    wanted = _stamp(name)
    if stamp.exists() and stamp.read_text() == wanted:
        return home
    venv.EnvBuilder(clear=True, symlinks=True).create(home)
    site_packages = home / sysconfig.get_path("purelib", vars={"base": ""}).lstrip("/")
    of_checkout = sysconfig.get_path("purelib")
    # Behind the environment's own packages, with what its .pth files add.
    link = f"import site; site.addsitedir({of_checkout!r})\n"
    (site_packages / "checkout.pth").write_text(link)
    _install(name, home)
    stamp.write_text(wanted)
    return home


def _install(name: str, home: Path) -> None:
    """Installs what the folder of that name asks for."""
    requirements = FOLDER / name / REQUIREMENTS
    if requirements.exists():
        pip = [str(python(HOME)), "-m", "pip", "--python", str(python(home))]
        subprocess.run([*pip, "install", "--quiet", "--requirement", requirements], check=True)
    npm = FOLDER / name / NPM
    if npm.exists():
        shutil.copy(npm, home)
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts"], cwd=home, check=True)


def _stamp(name: str) -> str:
    """Changes with what has to be installed, and with what the checkout's environment has."""
    files = [FOLDER / name / REQUIREMENTS, FOLDER / name / NPM, HOME / "test.stamp"]
    content = b"\0".join(path.read_bytes() for path in files if path.exists())
    return hashlib.sha256(content).hexdigest()
