"""`manage.py docs`: writes the generated parts of the pages, then builds the site.

python3 manage.py docs                   # both; the site is in docs/_build/html
python3 manage.py docs --pages-only      # only the pages, which are committed
python3 manage.py docs --record-names    # only the list of public names: after a deprecation, or a new one
"""

import argparse
import subprocess
import sys
from pathlib import Path

import django
from django.conf import settings

import readtrack

# What the reference reads needs apps that are set up, but no database and no Redis.
settings.configure(
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        *readtrack.EVERYTHING,
    ]
)
django.setup()

from docs import pages, public_names  # noqa: E402 - the code that it reads needs Django


def main() -> int:
    """Returns 0, or Sphinx's exit status when a page has a mistake."""
    parser = argparse.ArgumentParser(
        prog="manage.py docs", description="Writes the reference pages, then builds the site."
    )
    parser.add_argument("--pages-only", action="store_true", help="write the pages, build no site")
    parser.add_argument(
        "--record-names", action="store_true", help="record the public names anew, build no site"
    )
    options = parser.parse_args()
    if options.record_names:
        public_names.record()
        return 0
    for path in pages.write():
        print(f"Written: {path.relative_to(pages.FOLDER.parent)}", flush=True)
    if options.pages_only:
        return 0
    return build_site()


def build_site() -> int:
    """Runs Sphinx, for which a warning is an error. Returns its exit status."""
    folder: Path = pages.FOLDER
    site = folder / "_build" / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", str(folder), str(site)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
