"""docs/howto/beside.md says what tests/beside/ runs, with the same versions."""

import re
from pathlib import Path

from tests.beside.environments import names, versions

PAGE = Path(__file__).parent.parent.joinpath("docs/howto/beside.md").read_text(encoding="utf-8")
# Of each package that is named with its version, such as "swup 4.10.0" or "barba (`@barba/core`) 2.10.3".
NAMED = re.compile(r"([\w.@/-]+)(?:`\))? (\d[\d.]*\d)")
# They come with the package that they are of, and sites have any version.
HELPERS = {"Django", "jquery", "alpinejs", "@unseenco/e", "@imacrayon/alpine-ajax"}


def test_the_page_names_each_package_with_the_version_that_is_run() -> None:
    named = dict(NAMED.findall(PAGE))
    for folder in names():
        for package, version in versions(folder).items():
            if package not in HELPERS and not package.endswith("-plugin"):
                assert named.get(package) == version, (folder, package)


def test_each_requirement_is_pinned() -> None:
    for folder in names():
        assert all(re.fullmatch(r"[\d.]+", version) for version in versions(folder).values()), (
            folder
        )
