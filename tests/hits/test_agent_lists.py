"""How many user agents of public lists are judged wrong. docs/howto/robots.md has the figures."""

import importlib.util
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml_rs

from readtrack.hits.bots import LONGEST, reason_of

HAS_VERSION = re.compile(r"/\d|\d\.\d")
EVERY = 10  # of the agents of people one in so many is judged, because each takes 0.2 ms


def folder_of(package: str) -> Path:
    """Returns the folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def entries_of_matomo(names: str) -> Iterator[dict[str, Any]]:
    """Yields the entries of the lists in Matomo's device-detector whose names match the pattern."""
    folder = folder_of("device_detector") / "tests" / "fixtures" / "upstream"
    for path in sorted(folder.glob("*.yml")):
        if re.fullmatch(names, path.stem):
            entries: Any = yaml_rs.loads(path.read_text(encoding="utf-8"))
            yield from entries


@cache
def agents_of_browsers() -> list[str]:
    """Returns Matomo's user agents of people's browsers, without libraries such as CFNetwork."""
    agents = set()
    for entry in entries_of_matomo("(?!bots).*"):
        client = entry.get("client")
        is_browser = isinstance(client, dict) and client.get("type") == "browser"
        agent = entry["user_agent"]
        if is_browser and "CFNetwork" not in agent and HAS_VERSION.search(agent):
            agents.add(agent)
    return sorted(agents)


def agents_of_crawlers() -> list[str]:
    """Returns the user agents of the list crawler-user-agents."""
    path = folder_of("crawleruseragents") / "crawler-user-agents.json"
    entries = json.loads(path.read_text(encoding="utf-8"))
    return sorted({agent for entry in entries for agent in entry["instances"]})


def test_of_matomos_robots_three_in_a_thousand_are_missed_at_most() -> None:
    agents = sorted({entry["user_agent"] for entry in entries_of_matomo("bots")})
    missed = [agent for agent in agents if not reason_of(agent[:LONGEST])]
    assert len(agents) > 1_300
    assert len(missed) <= len(agents) * 0.003, missed


def test_matomos_assistants_are_told_from_its_other_robots() -> None:
    # Meta-ExternalAgent collects pages to train models, QualifiedBot those of its customers.
    no_assistants = {"Meta-ExternalAgent", "QualifiedBot", "Ai2Bot-DeepResearchEval"}
    for entry in entries_of_matomo("bots"):
        bot = entry["bot"]
        is_assistant = bot.get("category") in {"AI Assistant", "AI Agent"}
        reason = reason_of(entry["user_agent"][:LONGEST])
        if is_assistant and bot["name"] not in no_assistants:
            assert reason == "agent", entry
        if bot.get("category") in {"Search bot", "AI Data Scraper", "AI Search Crawler"}:
            assert reason == "bot", entry


def test_of_other_crawlers_three_in_a_thousand_are_missed_at_most() -> None:
    agents = agents_of_crawlers()
    missed = [agent for agent in agents if not reason_of(agent[:LONGEST])]
    assert len(agents) > 1_000
    assert len(missed) <= len(agents) * 0.003, missed


@pytest.mark.parametrize("first", [0, 5])
def test_of_browsers_three_in_a_thousand_are_refused_at_most(first: int) -> None:
    agents = agents_of_browsers()[first::EVERY]
    refused = [agent for agent in agents if reason_of(agent[:LONGEST])]
    assert len(agents) > 3_000
    assert len(refused) <= len(agents) * 0.003, refused
