"""The README's pictures can be taken."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest
from playwright.sync_api import Browser

from demo_project import shoot
from tests.demo.conftest import ROOT, Manage
from tests.support.depth import DEEP

BARE = "import runpy, sys; sys.modules['playwright'] = None; runpy.run_module('demo_project.shoot', run_name='__main__')"


@pytest.mark.skipif(
    not DEEP, reason="takes a tenth of the time of the demo's tests: READTRACK_DEEP=1"
)
def test_it_takes_four_small_pictures(display: Browser, demo_url: str) -> None:
    taken = dict(shoot.pictures(display, url=demo_url))
    assert list(taken) == ["front.png", "dashboard.png", "object.png", "two-readers.png"]
    # Width and height lead the header of a PNG.
    sizes = [struct.unpack(">II", picture[16:24]) for picture in taken.values()]
    assert sizes[:3] == [(1200, 720), (1200, 900), (1200, 900)]
    assert all(5_000 < len(picture) < 150_000 for picture in taken.values())


@pytest.mark.skipif(
    not DEEP, reason="takes a tenth of the time of the demo's tests: READTRACK_DEEP=1"
)
def test_it_takes_pictures_of_all_states(display: Browser, demo_url: str, manage: Manage) -> None:
    taken = dict(shoot.states(display, manage, url=demo_url))
    assert list(taken) == ["dark-and-small.png", "states.png"]
    assert all(5_000 < len(picture) < 150_000 for picture in taken.values())


def test_without_playwright_it_says_what_is_missing() -> None:
    done = subprocess.run([sys.executable, "-c", BARE], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "The pictures need playwright: pip install -e '.[test]'\n"
