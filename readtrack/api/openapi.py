"""The description of the JSON API in the format of OpenAPI 3.1, made of the table of questions."""

from collections.abc import Mapping
from typing import Any

import readtrack
from readtrack.api.parameters import Parameter
from readtrack.api.questions import Question, questions
from readtrack.api.schemas import PERIOD, answer_schema

#: What each status of an error means.
ERRORS: Mapping[int, str] = {
    400: "A parameter is wrong: the error names it, and what it may be.",
    401: "The token is missing, unknown, revoked or expired.",
    403: "The user of the token may not see these numbers.",
    404: "There is no such object, category, author or question.",
    405: "Only GET is answered.",
    503: "The database does not answer.",
}
_ERROR: Mapping[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "parameter": {"type": "string"},
                "allowed": {"type": "array", "items": {"type": "string"}},
            },
        }
    },
}


def description(server: str) -> dict[str, Any]:
    """Returns the description of the API of this site. `server` is the address of the index."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "readtrack", "version": readtrack.__version__},
        "servers": [{"url": server.rstrip("/")}],
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": _ERROR,
                "Period": PERIOD,
                **{question.name: _answer(question) for question in questions().values()},
            },
            "responses": {
                str(status): {
                    "description": meaning,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                }
                for status, meaning in ERRORS.items()
            },
        },
        "paths": {f"/{question.name}": _path(question) for question in questions().values()},
    }


def _answer(question: Question) -> dict[str, Any]:
    """Returns the schema of the answers to the question.

    The period has a schema with a name, because generators of clients would make one name of the
    property and of the parameter `period`.
    """
    schema = answer_schema(question)
    if question.has_period:
        schema["properties"]["period"] = {"$ref": "#/components/schemas/Period"}
    return schema


def _path(question: Question) -> dict[str, Any]:
    """Returns what OpenAPI says of one question."""
    schema = {"$ref": f"#/components/schemas/{question.name}"}
    answers: dict[str, Any] = {
        "200": {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    }
    for status in ERRORS:
        answers[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return {
        "get": {
            "operationId": question.name,
            "summary": question.description,
            "parameters": [_parameter(parameter) for parameter in question.offered_parameters],
            "responses": answers,
        }
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema = parameter.schema
    return {
        "name": parameter.name,
        "in": "query",
        "description": schema.pop("description"),
        "required": parameter.is_required,
        "schema": schema,
    }
