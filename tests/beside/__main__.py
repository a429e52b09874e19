"""Runs readtrack beside other packages, each in an environment of its own. The exit status is 1 if a
case fails.
"""

import argparse
import os
import subprocess
import sys

from demo_project import bootstrap
from demo_project.environment import python


def main() -> int:
    """Runs the cases of the packages that the command line names, or of all packages."""
    bootstrap.enter("test")
    from tests.beside import environments

    names = environments.names()
    parser = argparse.ArgumentParser(prog="python3 -m tests.beside", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of: {', '.join(names)} (all, if none is named)",
    )
    options, words = parser.parse_known_args()
    if unknown := set(options.names) - set(names):
        parser.error(f"there are no cases for {', '.join(sorted(unknown))}")
    failed = [name for name in options.names or names if run(name, words)]
    if failed:
        print(f"Failed beside: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def run(name: str, words: list[str]) -> int:
    """Runs the cases of one package, and passes the words on to pytest. Returns its exit status."""
    from tests.beside.environments import FOLDER, environment, versions

    home = environment(name)
    listed = ", ".join(f"{package} {version}" for package, version in versions(name).items())
    print(f"beside {listed}", flush=True)
    settings = (
        "settings" if not (FOLDER / name / "settings.py").exists() else f"beside.{name}.settings"
    )
    own = {"DJANGO_SETTINGS_MODULE": f"tests.{settings}"}
    command = [str(python(home)), "-m", "pytest", "-n", "0", "-q", "--no-cov", *words]
    command.append(str(FOLDER / name / "cases.py"))
    return subprocess.run(
        command, env={**os.environ, **own}, cwd=FOLDER.parents[1], check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
