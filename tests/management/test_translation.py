"""What the words of `manage.py readtrack` print is marked for translation; their --help is not, as Django has it."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test.utils import override_settings
from pytest_django import Settings

from readtrack import tracker
from readtrack.doctor.budget import budget
from readtrack.subjects import subject_of
from tests.imports import weblogs
from tests.support import factories
from tests.support.pseudo import unmarked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pseudo")]


def printed(*words: Any, **options: Any) -> str:
    out = StringIO()
    call_command("readtrack", *words, stdout=out, **options)
    return out.getvalue()


def test_a_flush_tells_its_figures() -> None:
    tracker.record(factories.hit(subject_of(factories.post())))
    assert unmarked(printed("flush")) == []


def test_forgetting_tells_what_goes_and_what_stays() -> None:
    assert unmarked(printed("forget", str(factories.user().pk), by="id")) == []


def test_a_budget_tells_all_but_the_names_of_keys_and_strategies() -> None:
    tracker.record(factories.hit(subject_of(factories.post())))
    text = re.sub(r"(?m)^  [a-z]\S+|\bB\b", "", printed("budget", posts=9, visitors=2, readers=900))
    assert set(unmarked(text)) <= {"hll", "set", "bitmap", "daily"}


@pytest.mark.parametrize(
    ("visitors", "readers", "advised"), [(0, 9, ""), (2, 900, "set"), (900, 900, "bitmap"), (9_000, 9_000_000, "hll")]
)
def test_what_a_budget_advises_has_its_reason(settings: Settings, visitors: int, readers: int, advised: str) -> None:
    settings.READTRACK = {"ANONYMOUS": "none"}
    found = budget(posts=9, visitors=visitors, readers=readers)
    assert found.advised == advised
    assert unmarked(found.reason) == []


def test_a_budget_without_anything_to_measure_is_told() -> None:
    assert set(unmarked(re.sub(r"(?m)^  [a-z]\S+|\bB\b", "", printed("budget")))) <= {"hll", "set", "bitmap", "daily"}


def test_an_import_tells_all_but_paths_and_codes(tmp_path: Path) -> None:
    factories.post(pk=1)
    log = weblogs.write(tmp_path / "access.log", [weblogs.line(), weblogs.line(after=1), weblogs.line("/x/")])
    text = printed("import", log, dry_run=True)
    assert re.search("⟦lines⟧ +3", text)
    assert unmarked(text) == []


def test_a_failing_server_is_told(settings: Settings) -> None:
    nowhere = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/0"}}
    for words in (["flush"], ["budget"]):
        with override_settings(CACHES=nowhere), pytest.raises(CommandError) as failure:
            printed(*words)
        assert unmarked(str(failure.value)) == []


@pytest.mark.parametrize("words", [["import"], ["forget", "nobody"], ["forget", "x", "--by", "id"]], ids=str)
def test_a_refusal_is_told(words: list[str]) -> None:
    with pytest.raises(CommandError) as failure:
        printed(*words)
    assert unmarked(str(failure.value)) == []
