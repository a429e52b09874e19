"""Parts, and what a site is told of those that it has not installed."""

import json
import re
from pathlib import Path

from django.template import Library
from pytest_django import Settings

import readtrack
from readtrack import parts, shipped
from readtrack.checks.setting_types import check_needs
from tests.support.forks import Forks

OF_DJANGO = ["django.contrib.auth", "django.contrib.contenttypes"]

WITHOUT = """
import json
import django
from django.conf import settings

settings.INSTALLED_APPS = [
    name for name in settings.INSTALLED_APPS if not name.startswith("readtrack.")
]
settings.READTRACK = {
    "DIGEST": {"site": "https://example.com"},
    "DOTS": {"queryset": "shop.visible"},
    "FLUSH_TASKS": 4,
    "MODELS": {"site.Thread": {"read_state": "positions", "boards": ["board"]}},
}
django.setup()
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.template import TemplateSyntaxError, engines
from jinja2 import TemplateRuntimeError
from readtrack.management.commands.readtrack import Command

refusals = []
for use in (
    lambda: call_command("readtrack", "digest", "--dry-run"),
    lambda: engines["django"].from_string("{% load readtrack %}{% readtrack_live title=True %}"),
    lambda: engines["django"].from_string("{% load readtrack %}{% readtrack_script %}"),
    lambda: engines["jinja2"].from_string("{{ readtrack_live(title=True) }}").render(),
):
    try:
        use()
    except (CommandError, TemplateSyntaxError, TemplateRuntimeError) as error:
        refusals.append(str(error))
help = Command().create_parser("manage.py", "readtrack").format_help()
messages = [[message.id, message.msg, message.hint] for message in run_checks()]
print(json.dumps([refusals, "digest" in help, messages]))
"""


def test_everything_is_the_core_and_each_part_that_comes_with_it() -> None:
    assert ["readtrack", *shipped.PARTS] == readtrack.EVERYTHING
    folder = Path(readtrack.__file__).parent
    apps = {path.parent.name for path in folder.glob("*/apps.py")}
    assert {name.removeprefix("readtrack.") for name in shipped.PARTS} == apps


def test_the_names_by_which_hints_know_a_part_are_its_own() -> None:
    for part in parts.installed():
        names = shipped.PARTS[part.name]
        assert names.setting == part.setting
        assert [*names.forms] == [*part.forms]
        assert [*names.model_options] == [*part.model_options]
        assert list(names.subcommands) == [each.name for each in part.subcommands()]
        library = Library()
        part.add_tags(library)
        assert list(names.tags) == list(library.tags)
        assert set(part.jinja_functions()) <= set(names.tags)


def test_a_site_is_told_which_part_a_setting_a_subcommand_or_a_tag_needs(bare_forks: Forks) -> None:
    done = bare_forks.run(
        WITHOUT, DJANGO_SETTINGS_MODULE="tests.settings", DATABASE_URL="sqlite:///:memory:"
    )
    assert done.code == 0, done.output
    refusals, is_in_help, messages = json.loads(done.output)
    assert refusals == [
        "`digest` needs 'readtrack.digest' in INSTALLED_APPS.",
        "`{% readtrack_live %}` needs 'readtrack.live' in INSTALLED_APPS.",
        "`{% readtrack_script %}` needs 'readtrack.script' in INSTALLED_APPS.",
        "`readtrack_live()` needs 'readtrack.live' in INSTALLED_APPS.",
    ]
    assert not is_in_help
    assert [
        "readtrack.W090",
        "READTRACK['DIGEST'] has no effect: readtrack.digest is not installed.",
        "Add 'readtrack.digest' to INSTALLED_APPS, or leave the setting out.",
    ] in messages
    hints = {msg: hint for _, msg, hint in messages}
    assert hints["READTRACK['DOTS'] has no key 'queryset'."] == (
        "Did you mean: FRONT_END['queryset'] (add 'readtrack.front_end' to INSTALLED_APPS)?"
    )
    assert hints["READTRACK has no setting 'FLUSH_TASKS'."] == (
        "Did you mean: CLUSTER['flush_tasks'] (add 'readtrack.cluster' to INSTALLED_APPS)?"
    )
    of_models = [(msg, hint[:46]) for number, msg, hint in messages if number == "readtrack.E046"]
    hint = "It needs 'readtrack.threads' in INSTALLED_APPS"
    assert of_models == [
        ("READTRACK['MODELS']['site.Thread'] has 'boards', which is no option.", hint),
        ("READTRACK['MODELS']['site.Thread'] has 'read_state': 'positions'.", hint),
    ]


def test_a_part_needs_each_part_that_its_modules_import() -> None:
    for part in parts.installed():
        code = "".join(path.read_text(encoding="utf-8") for path in Path(part.path).rglob("*.py"))
        others = shipped.PARTS.keys() - {part.name}
        imported = {other for other in others if re.search(rf"(from|import) {other}\b", code)}
        assert imported == {*part.needs, *part.uses}, part.name


def test_a_part_says_which_other_part_it_needs(settings: Settings) -> None:
    assert check_needs() == []
    settings.INSTALLED_APPS = ["readtrack", "readtrack.digest", *OF_DJANGO]
    [message] = check_needs()
    assert message.id == "readtrack.E091"
    assert message.msg == "readtrack.digest needs readtrack.numbers, which is not installed."


# In a process that has imported none of them.
OF_PARTS_THAT_ARE_MISSING = """
import importlib
import json
import sys
import django
from django.apps import apps
from django.conf import settings

settings.INSTALLED_APPS = [
    name for name in settings.INSTALLED_APPS if not name.startswith("readtrack.")
]
django.setup()
from django.core.exceptions import ImproperlyConfigured

tables = len(apps.get_models())
refusals = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(f"{name}.models")
    except ImproperlyConfigured as error:
        refusals.append(str(error))
print(json.dumps([refusals, len(apps.get_models()) - tables]))
"""


def test_models_of_a_part_that_is_not_installed_are_never_taken_for_those_of_the_core(
    bare_forks: Forks,
) -> None:
    folder = Path(readtrack.__file__).parent
    names = [
        part for part in shipped.PARTS if (folder / part.rpartition(".")[2] / "models.py").exists()
    ]
    done = bare_forks.run(
        OF_PARTS_THAT_ARE_MISSING, *names, DJANGO_SETTINGS_MODULE="tests.settings"
    )
    assert json.loads(done.output) == [
        [f"`{name}.models` needs '{name}' in INSTALLED_APPS." for name in names],
        0,
    ]
