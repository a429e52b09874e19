"""Robots are told by what they call themselves."""

import pytest

from readtrack.hits.bots import is_bot
from tests.support.factories import BROWSER


@pytest.mark.parametrize(
    "agent",
    [
        "",
        " ",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0)",
        "python-requests/2.32.0",
        "curl/8.5.0",
    ],
)
def test_a_robot_is_one(agent: str) -> None:
    assert is_bot(agent)


@pytest.mark.parametrize(
    "agent",
    [
        BROWSER,
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/18.5 Mobile/15E148 Safari/604.1",
        "Mozilla/5.0 (Linux; Android 10; CUBOT X30) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/125.0.0.0 Mobile Safari/537.36",
    ],
)
def test_a_person_is_none(agent: str) -> None:
    assert not is_bot(agent)


def test_an_endless_agent_is_judged_by_its_beginning() -> None:
    assert not is_bot(BROWSER + " x" * 10_000 + " Googlebot")
