"""A real browser for a test. Without one on this machine the test is skipped, save where CI runs
it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def real_browser(*flags: str, is_whole: bool = False) -> Iterator[Browser]:
    """Starts a browser with these flags, by default the quickest of this machine. Only a whole one
    keeps pages for the Back button.
    """
    # Here, so that the other tests do without playwright.
    from demo_project.chromium import chromium, program

    if not program(is_whole=is_whole):
        reason = "no Chromium on this machine (Debian: apt install chromium)"
        pytest.fail(reason) if os.environ.get("READTRACK_CI") else pytest.skip(reason)
    with (
        pytest.MonkeyPatch.context() as environment,
        chromium(*flags, is_whole=is_whole) as browser,
    ):
        environment.setenv(
            "DJANGO_ALLOW_ASYNC_UNSAFE", "1"
        )  # playwright runs an event loop in this thread
        yield browser
