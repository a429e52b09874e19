"""Robots: who is one, and by what name, by the user agent."""

import re
from collections.abc import Sequence
from configparser import ConfigParser
from functools import lru_cache
from importlib.resources import files

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


PEOPLE = _pattern("people")
ANDROID = _pattern("android")
HARMLESS = _pattern("harmless")
ROBOTS = _pattern("robots")
BROWSERS = _pattern("browsers")
MORE_BOTS = _pattern("more bots")

_bots = Bots()


def user_agent_of(request: HttpRequest) -> str:
    """Returns the beginning of the request's user agent; "" if there is none."""
    return str(request.META.get("HTTP_USER_AGENT", ""))[:LONGEST]


# Takes 290 µs for a new agent of LONGEST characters, and 0.05 µs for a cached one.
@cached_setting(maxsize=4096)
def is_bot(user_agent: str, is_anonymous: bool = True) -> bool:  # noqa: FBT001, FBT002 - a keyword would be slower
    """Returns True for the user agent of a robot, and for an empty one.

    The agent of a signed-in user is that of a robot only if the setting BOTS names it.
    """
    if is_anonymous and not user_agent.strip():
        return True
    if _matches("NOT_BOTS", user_agent):
        return False
    if _matches("BOTS", user_agent):
        return True
    if not is_anonymous:
        return False
    if conf.IS_BOT and not function_problem(conf.IS_BOT):
        try:
            return bool(import_string(conf.IS_BOT)(user_agent))
        except Exception as error:  # the page is made already, and a visitor can send any agent
            log_failure(conf.IS_BOT, "is-bot is asked instead", type(error))
    return _looks_like_bot(user_agent)


def _matches(setting: str, user_agent: str) -> bool:
    """Returns True if a regular expression of the setting BOTS or NOT_BOTS matches the agent."""
    valid, _ = patterns(setting)
    return any(pattern.search(user_agent) for pattern in valid)


def _looks_like_bot(user_agent: str) -> bool:
    """Returns True if is-bot, or the section "more bots" of agents.ini, knows the agent.

    Names of devices and other harmless words are left out before, because is-bot would take some of
    them for names of robots.
    """
    if PEOPLE.search(user_agent):
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
