"""A language that puts every text marked for translation into brackets."""

import re
from collections.abc import Callable

import pytest
from django.utils import translation
from django.utils.translation import trans_real

OPEN, CLOSE = "⟦", "⟧"


@pytest.fixture
def pseudo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes this the language of the test."""
    for name in ("gettext", "ngettext", "pgettext", "npgettext"):
        monkeypatch.setattr(translation._trans, name, _bracketed(getattr(trans_real, name)))  # type: ignore[attr-defined]


def _bracketed(translate: Callable[..., str]) -> Callable[..., str]:
    return lambda *args: f"{OPEN}{translate(*args)}{CLOSE}"


def unmarked(text: str) -> list[str]:
    """Returns the words of the text that are not in brackets."""
    innermost = re.compile(f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}")
    while innermost.search(text):
        text = innermost.sub("", text)
    return re.findall(r"[^\W\d_]{2,}", text)
