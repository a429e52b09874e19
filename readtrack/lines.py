"""Texts of the site and of its visitors as lines: what is cleaned before a text is shown in a mail,
a terminal, a log or a file, or reaches a program.
"""

import re

# Characters that are replaced in texts. Browsers leave some of them out, so that `java\nscript:`
# would be `javascript:`. XML and HTML cannot hold all of them, and in files some of them divide
# lines and cells.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
# Letters that joiners are between in Arabic, Indic and other scripts, and pictures, some of which
# are joined of several.
JOINED = r"\u0600-\u109f\u1780-\u18af\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
# Characters that nobody sees, or that turn the direction of what comes after them: a person reads
# another text than a program. Joiners and selectors stay where scripts and pictures need one.
HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000e01f0-\U000e0fff]"
    f"|(?<![{JOINED}])[\u200c\u200d]|[\u200c\u200d](?![{JOINED}])"
    # After signs such as # and pictures, and after Chinese characters.
    "|(?<![#*0-9\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af])[\U000e0100-\U000e01ef]"
)


def plain(text: str) -> str:
    """Returns the text with spaces for control characters, line breaks and lone surrogates."""
    return CONTROL.sub(" ", text)


def one_line(text: str) -> str:
    """Returns the text as one line that reads alike for people and programs, for mails, terminals,
    logs, the API and assistants.

    Control characters and line breaks become spaces, and characters that nobody sees, or that turn
    the direction, are left out.
    """
    if not (text.isascii() and text.isprintable()):  # the fastest way to see that nothing is to do
        text = HIDDEN.sub("", plain(text))
    return " ".join(text.split())
