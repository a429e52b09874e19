"""The description of the API is valid, and every answer is as it says."""

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
    [{}, {"DIMENSIONS": ["referrer", "country"]}, {"FUNNEL": (), "HISTORY": False}],
)
def test_the_description_is_valid(site_settings: dict[str, Any], settings: Settings) -> None:
    settings.READTRACK = site_settings
    api = described(editor())
    validate(api, cls=OpenAPIV31SpecValidator)
    assert api["servers"] == [{"url": "/readtrack/api"}]
    assert api["paths"].keys() == {f"/{name}" for name in questions()}


@each_row("name", SAME)
def test_every_answer_is_as_the_description_says(name: str, site: Site) -> None:
    question, given, *_ = SAME[name]
    api = described(site.editor)
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
    assert "/breakdown" not in description("/")["paths"]
    settings.READTRACK = {"DIMENSIONS": ["country"]}
    [parameter, *_] = description("/")["paths"]["/breakdown"]["get"]["parameters"]
    assert parameter["schema"]["enum"] == ["country"]
