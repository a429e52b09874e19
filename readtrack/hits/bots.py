"""Robots, by their user agents."""

import re
from configparser import ConfigParser
from functools import lru_cache
from importlib.resources import files

from django.http import HttpRequest
from django.utils.module_loading import import_string
from is_bot import Bots

from readtrack.conf import cached_setting, conf, function_problem, log_failure, patterns

LONGEST = 512  # characters of a user agent that are read; a visitor may send any number

_agents = ConfigParser(interpolation=None)
_agents.read_string(files("readtrack.hits").joinpath("agents.ini").read_text(encoding="utf-8"))
PEOPLE, ANDROID, HARMLESS, ROBOTS, BROWSERS, MORE_BOTS = (
    re.compile("|".join(_agents[name]["patterns"].split("\n")[1:]), re.IGNORECASE)
    for name in ("people", "android", "harmless", "robots", "browsers", "more bots")
)
ADDRESS = re.compile(r"(?<!\S)\S*(?:://|@|www\.)\S*")
WORD = re.compile(r"[a-z][\w.-]*", re.IGNORECASE | re.ASCII)

_known = Bots()


def user_agent_of(request: HttpRequest) -> str:
    """Returns the beginning of the request's user agent; "" if there is none."""
    return str(request.META.get("HTTP_USER_AGENT", ""))[:LONGEST]


@cached_setting(
    maxsize=4096
)  # of agents of at most LONGEST characters: 290 µs for a new one, 0.05 µs for a cached one
def is_bot(user_agent: str, is_anonymous: bool = True) -> bool:  # noqa: FBT001, FBT002 - a keyword would be slower
    """Returns True for a robot's user agent, and for none; of somebody signed in only where the
    site's BOTS name it.
    """
    if is_anonymous and not user_agent.strip():
        return True
    if any(pattern.search(user_agent) for pattern in patterns("NOT_BOTS")[0]):
        return False
    is_named = any(pattern.search(user_agent) for pattern in patterns("BOTS")[0])
    if is_named or not is_anonymous:
        return is_named
    if conf.IS_BOT and not function_problem(conf.IS_BOT):
        try:
            return bool(import_string(conf.IS_BOT)(user_agent))
        except Exception as error:  # the page is made already, and a visitor can send any agent
            log_failure(conf.IS_BOT, "is-bot is asked instead", type(error))
    if PEOPLE.search(user_agent):
        return False
    rest = HARMLESS.sub("", ANDROID.sub("(Linux; Android)", user_agent))
    return bool(_known.is_bot(rest) or MORE_BOTS.search(rest))


@lru_cache(maxsize=1024)
def name_of(user_agent: str) -> str:
    """Returns the robot's name in its agent: 30 letters, digits and `_.-` at most; "none" without
    agent, or "other".
    """
    text = ADDRESS.sub(" ", ANDROID.sub("", user_agent))
    words = [word for word in WORD.findall(text) if not BROWSERS.fullmatch(word)]
    found = (
        [word for word in words if ROBOTS.search(word)]
        or [word for word in words if f"{word}/" in text]
        or words
    )
    return found[0][:30].rstrip(".-") if found else "other" if user_agent.strip() else "none"
