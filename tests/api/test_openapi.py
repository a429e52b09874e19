"""The description of the API is valid, and every answer is as it says."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from pytest_django import Settings

from readtrack.api.openapi import ERRORS, description
from readtrack.api.questions import questions
from readtrack.subjects import subject_of
from tests.api.conftest import API, Site, answered, asked, editor, token_of
from tests.api.test_answers import SAME, filled
from tests.support.rows import each_row

pytestmark = pytest.mark.django_db


def described(user: Any) -> dict[str, Any]:
    content: dict[str, Any] = Client().get(f"{API}openapi.json", headers=token_of(user)).json()
    return content


def assert_valid(content: Any, schema_name: str, api: dict[str, Any]) -> None:
    """Asserts that the content is as the schema of that name says."""
    schema = {"$ref": f"#/components/schemas/{schema_name}", "components": api["components"]}
    validator = OAS31Validator(schema, format_checker=OAS31Validator.FORMAT_CHECKER)
    assert [error.message for error in validator.iter_errors(content)] == []


@pytest.mark.parametrize(
    "site_settings",
    [
        {},
        {"NUMBERS": {"dimensions": ["referrer", "country"]}},
        {"NUMBERS": {"funnel": (), "history": False}},
    ],
)
def test_the_description_is_valid(site_settings: dict[str, Any], settings: Settings) -> None:
    settings.READTRACK = site_settings
    api = described(editor())
    validate(api, cls=OpenAPIV31SpecValidator)
    assert api["servers"] == [{"url": "/readtrack/api"}]
    assert api["paths"].keys() == {f"/{name}" for name in questions()}


@pytest.mark.parametrize("site_settings", [{}, {"NUMBERS": {"dimensions": ["referrer"]}}])
def test_a_generator_makes_a_client_of_all_questions(
    site_settings: dict[str, Any], settings: Settings, tmp_path: Path
) -> None:
    pytest.importorskip("openapi_python_client")
    settings.READTRACK = site_settings
    config = tmp_path / "config.yml"
    config.write_text("post_hooks: []")  # which would look for ruff
    run(
        "openapi_python_client",
        *("generate", "--path", written_description(tmp_path), "--config", str(config)),
        *("--output-path", str(tmp_path / "client"), "--meta", "none", "--fail-on-warning"),
    )
    functions = {path.stem for path in (tmp_path / "client" / "api").rglob("*.py")}
    assert functions - {"__init__"} == {*questions()}


def test_a_generator_makes_models_of_all_answers(settings: Settings, tmp_path: Path) -> None:
    pytest.importorskip("datamodel_code_generator")
    settings.READTRACK = {}
    models = tmp_path / "models.py"
    description_file = written_description(tmp_path)
    run("datamodel_code_generator", "--input", description_file, "--output", str(models))
    run("models", folder=tmp_path)  # which is Python without errors
    made = models.read_text()
    assert [name for name in questions() if f"class {camel_case(name)}(" not in made] == []


def camel_case(name: str) -> str:
    """Returns the name of a class: `StillRead` for `still_read`."""
    return "".join(word.capitalize() for word in name.split("_"))


def written_description(folder: Path) -> str:
    """Writes the description of the API to a file. Returns its path."""
    path = folder / "api.json"
    path.write_text(json.dumps(description("/readtrack/api/"), default=str))
    return str(path)


def run(module: str, *words: str, folder: Path | None = None) -> None:
    """Runs a module as a program. Fails if the program does."""
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def api(site: Site) -> dict[str, Any]:
    return described(site.editor)


@each_row("name", SAME)
def test_every_answer_is_as_the_description_says(
    name: str, site: Site, api: dict[str, Any]
) -> None:
    question, given, *_ = SAME[name]
    assert_valid(answered(site.editor, question, **filled(given, site)), question, api)


def test_the_answers_about_an_object_are_as_the_description_says(site: Site) -> None:
    api = described(site.editor)
    subject = subject_of(site.articles[0])
    for question in ("numbers", "reading", "funnel", "now"):
        assert_valid(answered(site.author, question, object=subject), question, api)
    answer = answered(site.author, "breakdown", object=subject, dimension="device")
    assert_valid(answer, "breakdown", api)


def test_every_error_is_as_the_description_says(site: Site) -> None:
    api = described(site.editor)
    errors = [
        asked(site.editor, "top", period="x"),
        Client().get(f"{API}top"),
        asked(site.author, "unread"),
        asked(site.editor, "nothing"),
        Client().post(f"{API}top"),
    ]
    assert [error.status_code for error in errors] == [*ERRORS][:5]
    for error in errors:
        assert_valid(error.json(), "Error", api)


def test_an_answer_with_another_field_would_be_noticed(site: Site) -> None:
    api = described(site.editor)
    answer = answered(site.editor, "top")
    answer["rows"][0]["more"] = 1
    with pytest.raises(AssertionError, match="more"):
        assert_valid(answer, "top", api)


def test_the_description_changes_with_the_site(settings: Settings) -> None:
    settings.READTRACK = {}
    without = description("/")["paths"]
    assert "/breakdown" not in without
    names = [parameter["name"] for parameter in without["/top"]["get"]["parameters"]]
    assert "dimension" not in names  # which no value could be given
    settings.READTRACK = {"NUMBERS": {"dimensions": ["country"]}}
    [parameter, *_] = description("/")["paths"]["/breakdown"]["get"]["parameters"]
    assert parameter["schema"]["enum"] == ["country"]
