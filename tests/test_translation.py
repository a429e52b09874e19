"""Texts for visitors, editors and admins are marked for translation; those of commands are plain
English.

The dashboard has its own test, in tests/dashboard. The --help of commands is not marked, as in
Django.
"""

from contextlib import suppress
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.template import Context, Template

from readtrack import tracker
from readtrack.models import FlushRun
from readtrack.subjects import subject_of
from tests.support import factories
from tests.support.pseudo import OPEN, unmarked

BUDGET = pytest.param(["budget"], marks=pytest.mark.needs_parts("metrics"))

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pseudo")]


def rendered(source: str, **values: Any) -> str:
    return Template("{% load readtrack %}" + source).render(Context(values))


def test_counts_in_words_are_marked() -> None:
    post = factories.post(view_count=7)
    assert unmarked(rendered("{% view_count post words as n %}{{ n }}", post=post)) == []


def test_dots_are_marked() -> None:
    html = rendered(
        "{% unread_dot category %}", category=factories.category(), user=factories.user()
    )
    assert 'title="⟦New⟧"' in html
    assert ">⟦unread⟧<" in html


@pytest.mark.needs_parts("front_end", "script")
@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("unread/", {}),
        ("unread/", {"category": ["x" * 10] * 201}),
        ("unread/", {"category": "no.model:1"}),
        ("out/nonsense", {}),
    ],
)
def test_errors_of_the_endpoints_are_marked(path: str, data: dict[str, Any]) -> None:
    answer = factories.browser(factories.user()).get(f"/readtrack/{path}", data)
    assert answer.status_code >= 400
    message = answer.json()["error"]["message"] if "json" in answer["Content-Type"] else answer.text
    assert message.startswith(OPEN)
    assert set(unmarked(message)) <= {"no", "model"}


@pytest.mark.needs_parts("numbers", "dashboard")
def test_the_names_of_models_and_fields_in_the_admin_are_marked() -> None:
    from readtrack.dashboard.admin import Dashboard
    from readtrack.numbers.models import Note

    models: list[Any] = [FlushRun, Dashboard, Note]
    for model in models:
        assert unmarked(f"{model._meta.verbose_name} {model._meta.verbose_name_plural}") == []


@pytest.mark.parametrize(
    "words",
    [["flush"], ["doctor"], ["doctor", "--json"], ["erase", "1", "--by", "id"], BUDGET],
    ids=" ".join,
)
def test_commands_are_plain_english(words: list[str]) -> None:
    tracker.record(factories.hit(subject_of(factories.post())))
    out = StringIO()
    with suppress(SystemExit):  # of the doctor, whatever it finds in the tests' Redis
        call_command("readtrack", *words, stdout=out)
    assert out.getvalue()
    assert OPEN not in out.getvalue()
