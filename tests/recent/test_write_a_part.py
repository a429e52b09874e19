"""The page on parts: its table has the whole door, and its example works on a site."""

import re
from pathlib import Path

import pytest
from redis import Redis

from readtrack.parts import PartConfig
from tests.support.forks import Forks

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "write-a-part.md"
FILE = re.compile(r"^```python\n# (likes/\w+\.py)\n(.*?)^```", re.DOTALL | re.MULTILINE)
OF_DJANGO = {"default", "default_auto_field"}

RUN = """
import os
import sys

sys.path.insert(0, os.getcwd())
from django.conf import settings

settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "likes"]
import django

django.setup()
from django.apps import apps

# To make the tables without migrations takes a tenth of the time.
settings.MIGRATION_MODULES = {config.label: None for config in apps.get_app_configs()}
from django.test.runner import DiscoverRunner

sys.exit(DiscoverRunner(verbosity=0).run_tests(["likes"]))
"""


def test_the_table_has_each_name_of_the_door_and_no_other() -> None:
    section = PAGE.read_text().partition("\n## The door\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    named = re.findall(r"`(\w+)`", " ".join(cells))
    door = {name for name in vars(PartConfig) if not name.startswith("_")} - OF_DJANGO
    assert sorted(named) == sorted(door)


@pytest.mark.one_server("starts a site of its own")
def test_the_example_is_a_part_and_its_tests_pass(
    bare_forks: Forks, redis: Redis, redis_url: str, tmp_path: Path
) -> None:
    files = dict(FILE.findall(PAGE.read_text()))
    assert sorted(files) == [f"likes/{name}.py" for name in ("apps", "models", "tests", "views")]
    folder = tmp_path / "likes"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, code in files.items():
        of_our_site = code.replace("blog.models", "tests.site.models").replace("blog.", "site.")
        (tmp_path / name).write_text(of_our_site)
    ended = bare_forks.run(
        RUN,
        folder=tmp_path,
        DJANGO_SETTINGS_MODULE="tests.settings",
        DATABASE_URL="sqlite:///:memory:",
        READTRACK_TEST_REDIS_URL=redis_url,
    )
    assert ended.code == 0, ended.output
