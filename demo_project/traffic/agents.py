"""User agents of current browsers, varied enough that visitors without a cookie are told apart."""

from random import Random

WINDOWS = "Windows NT 10.0; Win64; x64"
MAC = "Macintosh; Intel Mac OS X 10_15_7"
LINUX = "X11; Linux x86_64"
ANDROIDS = (
    "SM-S928B",
    "SM-A556B",
    "Pixel 9",
    "Pixel 8a",
    "2312DRA50G",
    "CPH2609",
    "XQ-EC54",
    "moto g84 5G",
)
APPLE = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
BLINK = "AppleWebKit/537.36 (KHTML, like Gecko)"
#: The user agents of crawlers, with how often they come.
ROBOTS = {
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)": 34,
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)": 19,
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)": 15,
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)": 11,
    "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)": 8,
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)": 5,
    "python-requests/2.32.5": 3,
    "curl/8.14.1": 1,
}
#: Those of assistants that open a page because a person asks for it.
ASSISTANTS = {
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot": 7,
    "Mozilla/5.0 (compatible; Claude-User/1.0; +Claude-User@anthropic.com)": 3,
    "Mozilla/5.0 (compatible; Perplexity-User/1.0; +https://perplexity.ai/perplexity-user)": 2,
}


def person(rng: Random) -> str:
    """A browser's user agent, weighted roughly like the web's visitors."""
    kinds = (_chrome, _android, _edge, _firefox, _iphone, _safari)
    return rng.choices(kinds, weights=(30, 26, 8, 8, 20, 8))[0](rng)


def robot(rng: Random) -> str:
    """A crawler's; readtrack does not count it."""
    return rng.choices([*ROBOTS], weights=[*ROBOTS.values()])[0]


def assistant(rng: Random) -> str:
    """An assistant's, which readtrack counts apart from views."""
    return rng.choices([*ASSISTANTS], weights=[*ASSISTANTS.values()])[0]


def _build(rng: Random) -> str:
    return f"{rng.randint(138, 147)}.0.{rng.randint(7200, 7780)}.{rng.randint(30, 190)}"


def _chrome(rng: Random) -> str:
    return f"Mozilla/5.0 ({rng.choice((WINDOWS, WINDOWS, MAC, LINUX))}) {BLINK} Chrome/{_build(rng)} Safari/537.36"


def _android(rng: Random) -> str:
    platform = f"Linux; Android {rng.randint(13, 16)}; {rng.choice(ANDROIDS)}"
    return f"Mozilla/5.0 ({platform}) {BLINK} Chrome/{_build(rng)} Mobile Safari/537.36"


def _edge(rng: Random) -> str:
    build = _build(rng)
    return f"Mozilla/5.0 ({WINDOWS}) {BLINK} Chrome/{build.split('.')[0]}.0.0.0 Safari/537.36 Edg/{build}"


def _firefox(rng: Random) -> str:
    version = f"{rng.randint(128, 147)}.0"
    platform = rng.choice(
        (WINDOWS, LINUX, "X11; Ubuntu; Linux x86_64", "Macintosh; Intel Mac OS X 10.15")
    )
    return f"Mozilla/5.0 ({platform}; rv:{version}) Gecko/20100101 Firefox/{version}"


def _iphone(rng: Random) -> str:
    major, minor = rng.choice((17, 18, 26)), rng.randint(0, 7)
    platform = f"iPhone; CPU iPhone OS {major}_{minor} like Mac OS X"
    return f"Mozilla/5.0 ({platform}) {APPLE} Version/{major}.{minor} Mobile/{rng.randint(15, 23)}E148 Safari/604.1"


def _safari(rng: Random) -> str:
    return f"Mozilla/5.0 ({MAC}) {APPLE} Version/{rng.choice((17, 18, 26))}.{rng.randint(0, 6)} Safari/605.1.15"
