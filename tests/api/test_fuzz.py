"""Whatever a program sends, it gets an answer or an error that its description knows."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import example, given, settings
from hypothesis import strategies as st

from readtrack.api.answers import answer
from readtrack.api.errors import QuestionError
from readtrack.api.parameters import COMMON, texts_of
from readtrack.api.questions import QUESTIONS
from readtrack.numbers.scope import COMPARISONS, INTERVALS, LONGEST, PERIODS
from tests.api.conftest import API, editor, token_of
from tests.api.test_openapi import assert_valid, described
from tests.support import factories
from tests.support.depth import examples

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = [*{name for question in QUESTIONS for name in (p.name for p in question.parameters)}]
#: Keys of every type, and what is none.
KEYS = st.one_of(
    st.integers().map(str),
    st.sampled_from(
        ["1", "0", "-0", "+1", "1.0", "1e3", "٣", "²", "NaN", "inf", "%00", "%", "%zz"]
    ),
    st.uuids().map(str),
    st.text(max_size=30),
    st.binary(max_size=8).map(lambda raw: raw.decode("latin-1")),
    st.dates().map(str),
)
LABELS = st.sampled_from(
    [
        "site.post",
        "site.product",
        "site.page",
        "site.profile",
        "site.journal",
        "site.review",
        "site.article",
        "site.category",
        "site.topic",
        "auth.user",
        "site",
        "",
        "SITE.POST",
    ]
)
SUBJECTS = st.tuples(LABELS, KEYS).map(":".join)
VALUES = st.one_of(
    st.sampled_from([*PERIODS, "published", *COMPARISONS, *INTERVALS, "referrer", "device"]),
    st.sampled_from(["category", "author", "age", "reason", "robot", "x" * (LONGEST + 1)]),
    st.dates().map(str),
    LABELS,
    KEYS,
    SUBJECTS,
)
QUESTION = st.sampled_from([question.name for question in QUESTIONS])
#: Values that parameters may have; the others have VALUES only.
GOOD: dict[str, Any] = {
    "period": st.sampled_from([*PERIODS, "published"]),
    "compare": st.sampled_from([*COMPARISONS]),
    "interval": st.sampled_from([*filter(None, INTERVALS)]),
    "from": st.dates().map(str),
    "to": st.dates().map(str),
    "model": LABELS,
    "object": SUBJECTS,
    "category": SUBJECTS,
    "author": KEYS,
    "dimension": st.sampled_from(["referrer", "device"]),
    "limit": st.integers(1, 1_000).map(str),
    "group": st.sampled_from(["category", "author", "age", "reason", "robot"]),
}


@st.composite
def asking(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """Draws a question and parameters, most of which the question has."""
    name = draw(QUESTION)
    [question] = [question for question in QUESTIONS if question.name == name]
    own = [parameter.name for parameter in question.parameters]
    given: dict[str, str] = {}
    for parameter in question.parameters:
        if parameter.is_required:
            given[parameter.name] = draw(GOOD[parameter.name])
    for parameter_name in draw(st.lists(st.sampled_from(own), max_size=3)):
        given[parameter_name] = draw(st.one_of(GOOD.get(parameter_name, VALUES), VALUES))
    if draw(st.integers(0, 9)) == 0:
        given[draw(st.one_of(st.sampled_from(NAMES), st.text(max_size=10)))] = draw(VALUES)
    return name, given


@pytest.fixture
def api(settings: Any) -> dict[str, Any]:
    settings.READTRACK = {"NUMBERS": {"dimensions": ["referrer", "device"]}, "TIMEOUT": 10.0}
    for make in factories.KINDS.values():
        make()
    return described(editor())


@pytest.mark.parametrize("sees_all", [True, False])
def test_no_parameters_end_in_a_fault(sees_all: bool, api: dict[str, Any]) -> None:
    user = editor() if sees_all else factories.user()
    client = Client(headers=token_of(user), raise_request_exception=True)

    statuses = set()

    @settings(max_examples=examples(300))
    @given(asking())
    @example(("numbers", {"from": "0001-01-01", "to": "9999-12-31"}))
    @example(("numbers", {"from": "2026-01-01", "to": "9999-12-31", "interval": "hour"}))
    @example(("top", {"author": "1" * 4_000}))
    @example(("numbers", {"object": "site.page:" + "%25" * 1_000}))
    @example(("numbers", {"object": "site.product:" + "a" * 32}))
    @example(("numbers", {"object": "site.page:\U0001f600"}))
    @example(("top", {"dimension": "referrer", "value": "\U0001f600"}))
    @example(("top", {"dimension": "referrer", "value": "%s' OR ''='"}))
    def try_it(asked: tuple[str, dict[str, str]]) -> None:
        question, parameters = asked
        response = client.get(f"{API}{question}?{urlencode(parameters, errors='replace')}")
        statuses.add(response.status_code)
        assert response.status_code in (200, 400, 403, 404), response.content
        schema_name = question if response.status_code == 200 else "Error"
        assert_valid(response.json(), schema_name, api)

    try_it()
    assert statuses >= {200, 400, 404 if sees_all else 403}


@given(st.text(max_size=200))
@settings(max_examples=examples(50))
def test_no_query_string_ends_in_a_fault(query: str) -> None:
    user = User.objects.first() or editor()
    environ: Any = {"QUERY_STRING": query.encode(errors="replace").decode("latin-1")}
    response = Client(headers=token_of(user)).get(f"{API}top", **environ)
    assert response.status_code in (200, 400)


def answer_or_error(
    question: str, user: User, arguments: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    """Returns the content of the answer or of the error, and the status."""
    try:
        return answer(question, user, arguments), 200
    except QuestionError as error:
        return error.content, error.status


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), KEYS, SUBJECTS)
JSON = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=2),
    st.dictionaries(st.text(max_size=3), SCALARS, max_size=2),
)


@given(QUESTION, st.dictionaries(st.sampled_from(NAMES), st.one_of(JSON, VALUES), max_size=4))
@settings(max_examples=examples(100))
@example("top", {"category": "site.category:\ud800"})
@example("top", {"limit": 10**4_000})
@example("top", {"limit": -(10**5_000)})
def test_no_arguments_of_an_assistant_end_in_a_fault(
    question: str, arguments: dict[str, Any]
) -> None:
    user = User.objects.filter(is_superuser=True).first()
    if user is None:
        user = factories.user(is_staff=True, is_superuser=True)
    content, status = answer_or_error(question, user, arguments)
    assert status in (200, 400, 403, 404)
    assert status == 200 or len(str(content)) < 10_000


def test_long_names_are_not_sent_back() -> None:
    with pytest.raises(QuestionError) as raised:
        texts_of({"x" * 100_000: "1"}, COMMON.values())
    assert len(str(raised.value.content)) < 1_000


@pytest.mark.parametrize("value", [7, True, 1.5, [1], {"label": "site.post"}, b"7"])
def test_a_value_of_another_type_is_no_text(value: Any) -> None:
    with pytest.raises(QuestionError) as raised:
        texts_of({"author": value}, COMMON.values())
    assert raised.value.parameter == "author"
