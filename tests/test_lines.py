"""A line reads alike for people and programs, in every place that cleans texts."""

import json
import unicodedata
from email.message import EmailMessage

import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from readtrack.lines import one_line
from readtrack.texts import line_of
from tests.support.rows import each_row

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all rules")
BITS = "".join("\u200b" if bit == "1" else "\u200c" for bit in f"{0x5EC:b}")
SELECTORS = "".join(chr(0xE0100 + byte) for byte in b"secret")

#: Texts with what nobody sees, and the lines that are left of them.
LINES = {
    "tags": (f"Good{TAGS} news", "Good news"),
    "zero width": (f"Good{BITS} news\ufeff", "Good news"),
    "bits between letters": ("g\u200do\u200co\u200bd\u2060", "good"),
    "selectors": (f"Good{SELECTORS} news\ufe01\ufe0f", "Good news"),
    "selectors of a picture": (f"❤\ufe0f{SELECTORS}", "❤\ufe0f"),
    "bidirectional": ("\u202egpj.exe\u2066\u200f\u061c", "gpj.exe"),
    "fillers": ("a\u3164\u115f\uffa0\u2800b", "ab"),
    "soft hyphens": ("news\u00adpaper", "newspaper"),
    "invisible signs": ("f\u2061(x)\u2062\u206f\ufff9", "f(x)"),
    "musical and shorthand": ("a\U0001d173\U0001bca0b", "ab"),
    "line breaks": ("one\r\n\ttwo\u2028three\x85\x0bfour", "one two three four"),
    "no characters": ("a\ud800\uffff\x00b", "a b"),
    # What scripts and pictures need stays.
    "Persian": ("می\u200cکنیم", "می\u200cکنیم"),
    "Hindi": ("क्\u200dष", "क्\u200dष"),
    "a family": ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"),
    "a rainbow": ("🏳\ufe0f\u200d🌈", "🏳\ufe0f\u200d🌈"),
    "a key": ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
    "a name in Japanese": ("葛\U000e0100城", "葛\U000e0100城"),
    "accents": ("Cafe\u0301, „naïve“ £5", "Cafe\u0301, „naïve“ £5"),
    "Hebrew": ("שלום עולם", "שלום עולם"),
}


@each_row("name", [*LINES])
def test_a_line_has_nothing_that_nobody_sees(name: str) -> None:
    text, line = LINES[name]
    assert one_line(text) == line
    assert line_of(text) == line


@given(st.text())
def test_any_text_becomes_a_line_once(text: str) -> None:
    line = one_line(text)
    assert one_line(line) == line
    assert line.splitlines() in ([], [line])
    for char in line:
        category = unicodedata.category(char)
        assert category not in {"Cc", "Cs", "Zl", "Zp"}
    json.dumps(line, ensure_ascii=False).encode()
    EmailMessage()["Subject"] = line


@pytest.mark.needs_parts("numbers")
def test_a_campaign_that_a_visitor_sends_is_clean(settings: Settings, rf: RequestFactory) -> None:
    from readtrack.numbers import dimensions

    settings.READTRACK = {"NUMBERS": {"dimensions": ["campaign"]}}
    request = rf.get("/", {"utm_campaign": f"spring{TAGS}{SELECTORS}\u200b\u3164"})
    assert dimensions.values(request) == (("campaign", "spring"),)
