"""Robots, and assistants that fetch a page for a person: who is one, and by what name, by the user
agent.
"""

import re
from collections.abc import Sequence
from configparser import ConfigParser
from functools import lru_cache
from importlib.resources import files
from typing import Literal

from django.http import HttpRequest
from django.utils.module_loading import import_string
from is_bot import Bots

from readtrack.conf import cached_setting, conf, function_problem, log_failure, patterns

LONGEST = 512  # characters of a user agent that are read; a visitor may send any number
LONGEST_NAME = 30  # characters of a robot's name

ADDRESS = re.compile(r"(?<!\S)\S*(?:://|@|www\.)\S*")
WORD = re.compile(r"[a-z][\w.-]*", re.IGNORECASE | re.ASCII)

_sections = ConfigParser(interpolation=None)
_sections.read_string(files("readtrack.hits").joinpath("agents.ini").read_text(encoding="utf-8"))


def _pattern(section: str) -> re.Pattern[str]:
    """Returns a pattern that matches what any line of the section in agents.ini matches."""
    _, *lines = _sections[section]["patterns"].split("\n")
    return re.compile("|".join(lines), re.IGNORECASE)


ASSISTANTS = _pattern("assistants")
PEOPLE = _pattern("people")
DEVICES = _pattern("devices")
NO_DEVICE = _pattern("no device")
ANDROID = _pattern("android")
HARMLESS = _pattern("harmless")
ROBOTS = _pattern("robots")
BROWSERS = _pattern("browsers")
MORE_BOTS = _pattern("more bots")

_bots = Bots()


def user_agent_of(request: HttpRequest) -> str:
    """Returns the beginning of the request's user agent; "" if there is none."""
    return str(request.META.get("HTTP_USER_AGENT", ""))[:LONGEST]


# Takes some 350 µs for a browser's new agent, 1.5 ms for a made-up one of LONGEST characters, and
# 0.05 µs for a cached one.
@cached_setting(maxsize=4096)
def reason_of(
    user_agent: str,
    is_anonymous: bool = True,  # noqa: FBT001, FBT002 - a keyword would be slower
    is_signed: bool = False,  # noqa: FBT001, FBT002
) -> Literal["bot", "agent"] | None:
    """Returns why a request with this user agent does not count: "agent" for an assistant that
    fetches the page for a person, "bot" for another robot and for an empty agent; None for a
    person.

    A signed request is an assistant's. A signed-in user is a robot only if the setting BOTS names
    the agent, but an assistant may fetch a page for a signed-in user.
    """
    has_no_name = not user_agent.strip()
    if has_no_name and is_anonymous and not is_signed:
        return "bot"
    if _matches("BOTS.people", user_agent):
        return None
    if _matches("BOTS.more", user_agent):
        return "bot"
    if is_signed or ASSISTANTS.search(user_agent):
        return "agent"
    if is_anonymous and _is_bot(user_agent):
        return "bot"
    return None


def _is_bot(user_agent: str) -> bool:
    """Returns True for a robot, by the site's function in BOTS, or else by `_looks_like_bot`."""
    path = conf.BOTS.function
    if path and not function_problem(path):
        try:
            return bool(import_string(path)(user_agent))
        except Exception as error:  # the page is made already, and a visitor can send any agent
            log_failure(path, "is-bot is asked instead", type(error))
    return _looks_like_bot(user_agent)


def _matches(setting: str, user_agent: str) -> bool:
    """Returns True if a regular expression of "BOTS.more" or "BOTS.people" matches the agent."""
    valid, _ = patterns(setting)
    return any(pattern.search(user_agent) for pattern in valid)


def _looks_like_bot(user_agent: str) -> bool:
    """Returns True if is-bot, or the section "more bots" of agents.ini, knows the agent.

    Names of devices and other harmless words are left out before, because is-bot would take some of
    them for names of robots.
    """
    if PEOPLE.search(user_agent):
        return False
    if DEVICES.search(user_agent) and not NO_DEVICE.search(user_agent):
        return False
    without_device = ANDROID.sub("(Linux; Android)", user_agent)
    telling_text = HARMLESS.sub("", without_device)
    return bool(_bots.is_bot(telling_text) or MORE_BOTS.search(telling_text))


@lru_cache(maxsize=1024)
def name_of(user_agent: str) -> str:
    """Returns the robot's name in its agent: LONGEST_NAME letters, digits and `_.-` at most.

    For an agent without a name it is "other", for an empty agent "none".
    """
    text = ADDRESS.sub(" ", ANDROID.sub("", user_agent))
    candidates = [word for word in WORD.findall(text) if not BROWSERS.fullmatch(word)]
    if not candidates:
        return "other" if user_agent.strip() else "none"
    name = _best_name(candidates, text)[:LONGEST_NAME]
    return name.rstrip(".-")


def _best_name(candidates: Sequence[str], text: str) -> str:
    """Returns the word that names the robot best.

    It is the first word that looks like a robot, else the first word with a version in the text,
    else the first word.
    """
    for word in candidates:
        if ROBOTS.search(word):
            return word
    for word in candidates:
        if f"{word}/" in text:
            return word
    return candidates[0]
