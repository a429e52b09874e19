"""Robots, by their user agents."""

import logging
import re

from django.http import HttpRequest
from django.utils.module_loading import import_string
from is_bot import Bots

from readtrack.conf import cached_setting, conf, function_problem, patterns

LONGEST = 512  # characters of a user agent that are read; a visitor may send any number

# People whom is-bot takes for robots: text browsers, browsers with an agent of a form of their own, and platforms of
# televisions, unless a robot names itself beside them.
PEOPLE = re.compile(
    r"^(?:Lynx|w3m|E?Links|Dillo|NetSurf)[ /(]|^dv\(.*UCBrowser/|^Opera/9"
    r"|^(?!.*(?:bot|crawl|spider|headless|https?:|@)).*\b(?:HbbTV|Smart-?TV|Tizen|Web[0O]S\b|NetCast|VIDAA|Hisense|Vizio"
    r"|Roku/|(?-i:AFT[A-Z])|OMI/|CE-HTML|NetTV|(?:Google|Apple) ?TV)",
    re.IGNORECASE,
)

# Parts of people's user agents with words of robots in them: names of phones ("Discovery", "C Bot"), and programs
# of WeChat and of browsers. They are left out before is-bot is asked.
ANDROID = re.compile(
    r"\(Linux;(?![^()]*(?:compatible|https?:|@|(?:bot|google)[\w-]*/))[^()]*Android(?:[^()]|\([^()]*\))*\)",
    re.IGNORECASE,
)
HARMLESS = re.compile(
    r"IEMobile/[^()]*|Process/\w+|U_AGENT|Sogou(?:MSE|MobileBrowser)"
    r"|chromeframe/[\d.]+|Java(?:Platform)?/J\w+|\(HTTPS?\b(?!:)[^()]*\)",
    re.IGNORECASE,
)

# Robots that is-bot takes for people: agents without a word that browsers have in common, browsers without an engine,
# those that are "compatible" with nothing, and programs by their names. docs/howto/robots.md has the shares found.
MORE_BOTS = re.compile(
    r"^(?!.*(?:Mozilla|Opera|Dalvik|MIDP|Browser|UCWEB|WAP|HbbTV|AppleWebKit|DoCoMo|SmartTV|Nintendo))"
    r"|^Mozilla/(?!.*(?:Gecko|WebKit|MSIE|Presto|Opera|NetFront|Safari|Firefox|Browser|Android|TV|Play))"
    r"|\(compatible; (?!MSIE|Konqueror|ANTGalio|Polaris)[^()]*\)$|like Gecko; compatible;"
    r"|\(Unknown; Linux (?:x86|i686)|jsdom|GTmetrix|Siege/|claude-web|screen-?shot"
    r"|ms-?office|Microsoft (?:Office|Outlook)",
    re.IGNORECASE,
)

logger = logging.getLogger("readtrack")

_known = Bots()


def user_agent_of(request: HttpRequest) -> str:
    """Returns the beginning of the request's user agent; "" if there is none."""
    return str(request.META.get("HTTP_USER_AGENT", ""))[:LONGEST]


@cached_setting(maxsize=4096)  # 290 µs for a new agent, 0.04 µs for a cached one
def is_bot(user_agent: str) -> bool:
    """Returns True for a robot's user agent and for an empty one. The agent has at most LONGEST characters."""
    if not user_agent.strip():
        return True
    if _matches("NOT_BOTS", user_agent):
        return False
    return is_named(user_agent) or _is_judged_bot(user_agent)


@cached_setting(maxsize=4096)
def is_named(user_agent: str) -> bool:
    """Returns True if the site's BOTS name the user agent, and its NOT_BOTS do not."""
    return _matches("BOTS", user_agent) and not _matches("NOT_BOTS", user_agent)


def _is_judged_bot(user_agent: str) -> bool:
    if conf.IS_BOT and not function_problem(conf.IS_BOT):
        try:
            return bool(import_string(conf.IS_BOT)(user_agent))
        except Exception:  # the page is made already, and a visitor can send any agent
            logger.exception("%s failed; is-bot is asked instead.", conf.IS_BOT)
    if PEOPLE.search(user_agent):
        return False
    rest = HARMLESS.sub("", ANDROID.sub("(Linux; Android)", user_agent))
    return bool(_known.is_bot(rest) or MORE_BOTS.search(rest))


def _matches(name: str, user_agent: str) -> bool:
    return any(pattern.search(user_agent) for pattern in patterns(name)[0])
