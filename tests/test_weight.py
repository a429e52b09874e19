"""What `python -m tests.weight` counts in the text of a package."""

from pathlib import Path
from textwrap import dedent

import pytest

from tests import weight
from tests.weight import Code, Figures, Module

FILES = {
    "__init__": '"""The package."""\n',
    "apps": 'class Config(AppConfig):\n    name = "readtrack"\n',
    "core/apps": 'class Config(AppConfig):\n    name = "readtrack"\n',
    "middleware": """\
        from readtrack import conf, digest

        # The mail is imported when it is sent.
        def send(user):
            from readtrack.digest.mail import mail

            return mail(user) if user else None  # nobody has none
        """,
    "conf": "WINDOW = 1800\n",
    "digest/__init__": "",
    "digest/apps": 'class DigestConfig(AppConfig):\n    name: str = "readtrack.digest"\n',
    "digest/mail": "from .. import conf\nfrom . import sending\nimport readtrack.middleware\n",
    "digest/sending": "",
    "digest_options": "EVERY = 'week'\n",
    "contrib/__init__": "",
    "contrib/health": "from readtrack.digest import mail\n",
    "contrib/wagtail/apps": 'class Config(AppConfig):\n    name = "readtrack.contrib.wagtail"\n',
    "migrations/0001_initial": "",
}


@pytest.fixture
def modules(tmp_path: Path) -> dict[str, Module]:
    """Returns the modules of a small package with two parts."""
    for name, text in FILES.items():
        path = tmp_path / "readtrack" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return weight.modules_of(tmp_path)


def test_modules_are_found_by_name_without_migrations(modules: dict[str, Module]) -> None:
    assert len(modules) == len(FILES) - 1
    assert modules["readtrack.digest"].is_package
    assert not modules["readtrack.digest.mail"].is_package


def test_a_part_is_a_folder_with_an_app_of_its_own(modules: dict[str, Module]) -> None:
    parts = weight.parts_of(modules)
    assert parts == ["readtrack.contrib", "readtrack.contrib.wagtail", "readtrack.digest"]
    assert weight.place_of("readtrack.contrib.wagtail.apps", parts) == "readtrack.contrib.wagtail"
    assert weight.place_of("readtrack.contrib.health", parts) == "readtrack.contrib"
    assert weight.place_of("readtrack.digest_options", parts) == ""


def test_comments_and_blank_lines_are_no_code(modules: dict[str, Module]) -> None:
    assert weight.measured([modules["readtrack.middleware"]]) == Code(
        files=1,
        lines=5,
        functions=1,
        code_lines=4,
        tokens=29,
        ternaries=1,
    )


def test_figures_of_several_modules_are_added_up() -> None:
    code = weight.measured(
        [Module("a", "a = 1 if b else 2\n"), Module("c", "async def c(): 1\n\n")]
    )
    assert code == Code(files=2, lines=2, functions=1, code_lines=2, tokens=14, ternaries=1)
    assert (code.tokens_a_line, code.ternaries_per_thousand) == (7, 500)
    assert weight.measured([]).tokens_a_line == 0


def test_imports_are_found_in_functions_and_by_dots(modules: dict[str, Module]) -> None:
    assert weight.imports_of(modules["readtrack.middleware"], modules) == {
        "readtrack.conf",
        "readtrack.digest",
        "readtrack.digest.mail",
    }
    assert weight.imports_of(modules["readtrack.digest.mail"], modules) == {
        "readtrack.conf",
        "readtrack.digest.sending",
        "readtrack.middleware",
    }
    package = Module(
        "readtrack.digest", "from . import mail\nfrom ..conf import WINDOW\n", is_package=True
    )
    assert weight.imports_of(package, modules) == {"readtrack.conf", "readtrack.digest.mail"}


def test_only_imports_from_the_core_into_parts_are_counted(modules: dict[str, Module]) -> None:
    assert weight.imports_across(modules, weight.parts_of(modules)) == [
        "readtrack.middleware > readtrack.digest",
        "readtrack.middleware > readtrack.digest.mail",
    ]


def test_each_module_is_in_the_core_or_in_one_part(modules: dict[str, Module]) -> None:
    figures = weight.code_figures(modules)
    assert figures["package: files"] == 13
    assert figures["core: files"] == 6
    assert figures["part contrib: files"] == 2
    assert figures["part contrib.wagtail: files"] == 1
    assert figures["part digest: files"] == 4


def test_a_table_shows_of_names_how_many_they_are() -> None:
    columns: dict[str, Figures] = {
        "v1": {"lines": 1200, "tables": ["Alert", "Note"], "first row of Note": "a view"},
        "present": {"lines": 1000, "tables": ["Note"], "ratio": 1.25},
    }
    assert weight.table(columns) == dedent("""\
                               v1  present
        lines               1,200    1,000
        tables                  2        1
        first row of Note  a view        -
        ratio                   -     1.25""")
    assert weight.names(columns) == "\ntables\n  Alert  (only v1)\n  Note"


def test_figures_of_a_part_that_only_one_checkout_has_stand_with_those_of_the_others() -> None:
    columns: dict[str, Figures] = {
        "v1": {"core: files": 3, "part a: files": 1, "settings": 5},
        "present": {"core: files": 2, "part a: files": 1, "part b: files": 1, "settings": 4},
    }
    assert weight.titles_of(columns) == [
        "core: files",
        "part a: files",
        "part b: files",
        "settings",
    ]


def test_a_table_is_told_by_the_act_that_filled_it_first() -> None:
    filled_after = {"a view": [], "a flush": ["Note"], "an archive": ["Alert", "Note"]}
    assert weight.first_act("Note", filled_after) == "a flush"
    assert weight.first_act("Rename", filled_after) == "none"
