"""All checks together."""

import ast
import re
from pathlib import Path

from django.core.management import call_command
from pytest_django import Settings

from readtrack.checks import setup
from readtrack.checks.setup import CHECKS, DATABASE_CHECKS, check_setup
from tests.checks.findings import found

FILES = sorted(Path(setup.__file__).parent.glob("*.py"))


def nodes() -> list[ast.AST]:
    """Returns the syntax of all files of checks."""
    return [node for path in FILES for node in ast.walk(ast.parse(path.read_text("utf-8")))]


def test_the_tests_own_site_is_set_up_well() -> None:
    assert check_setup(None) == []
    call_command("check")


def test_each_check_has_an_id_of_its_own_and_a_hint() -> None:
    ids = []
    for node in nodes():
        if not isinstance(node, ast.Call):
            continue
        level = ast.unparse(node.func).removeprefix("checks.")
        if level not in ("Error", "Warning"):
            continue
        words = {keyword.arg: keyword.value for keyword in node.keywords}
        check_id = ast.literal_eval(words["id"])
        assert re.fullmatch(rf"readtrack\.{level[0]}\d{{3}}", check_id)
        assert len(ast.unparse(words["hint"])) > 20, check_id
        ids.append(check_id)
    assert len(ids) > 30
    assert sorted(set(ids)) == sorted(ids)


def test_every_check_is_called() -> None:
    names = [node.name for node in nodes() if isinstance(node, ast.FunctionDef)]
    checks = [name for name in names if name.startswith("check_") and name != "check_setup"]
    assert sorted(checks) == sorted(check.__name__ for check in (*CHECKS, *DATABASE_CHECKS))


def test_checking_touches_no_network(settings: Settings) -> None:
    nowhere = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": "redis://192.0.2.1:1/0"}
    settings.CACHES = {"default": nowhere}
    assert found() == []
