"""Debian's Firefox, driven by Marionette, the protocol that it speaks itself (JSON over TCP)."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import pytest

from demo_project.engines.process import Child
from tests.support.waiting import ENOUGH, comes_true

PREFERENCES = {
    "marionette.port": 0,  # any that is free
    "app.normandy.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "http://127.0.0.1:9/",
    "toolkit.telemetry.enabled": False,
}
FRESH = """const [version] = arguments, name = "general.useragent.override";
Services.prefs.setStringPref(name, `Mozilla/5.0 (X11; Linux; rv:${version}.0) Gecko/20100101 Firefox/${version}.0`);
Services.cookies.removeAll(); Services.cache2.clear();"""
ANSWERS = """return performance.getEntriesByType("resource")
  .filter(one => one.initiatorType == "fetch" && one.responseEnd).length"""


class Firefox:
    """One window of a running Firefox. Its commands are those of WebDriver."""

    def __init__(self, connection: socket.socket, file: IO[bytes]) -> None:
        self._connection, self._file, self._number = connection, file, 0
        self._answer()  # its greeting
        timeouts = {"script": 1000 * int(ENOUGH)}
        self.command("WebDriver:NewSession", acceptInsecureCerts=True, timeouts=timeouts)
        # It asks for no password, so every other user of this machine could command it.
        self.command("Marionette:AcceptConnections", value=False)

    def _answer(self) -> Any:
        size = b""
        while (digit := self._file.read(1)) != b":":
            assert digit, "Firefox hung up."
            size += digit
        return json.loads(self._file.read(int(size)))

    def command(self, name: str, **arguments: Any) -> Any:
        self._number += 1
        sent = json.dumps([0, self._number, name, arguments]).encode()
        self._connection.sendall(b"%d:%s" % (len(sent), sent))
        _, _, error, result = self._answer()
        assert error is None, error
        return result

    def run(self, script: str, *arguments: Any, context: str = "content") -> Any:
        """Runs a script in the page, or in the browser itself (`chrome`). Returns what it returns."""
        self.command("Marionette:SetContext", value=context)
        try:
            return self.command("WebDriver:ExecuteScript", script=script, args=arguments)["value"]
        finally:
            self.command("Marionette:SetContext", value="content")

    def begin(self, version: int) -> None:
        """Makes it the browser of a new reader: without cookies and kept files, with a user agent
        of its own.
        """
        self.run(FRESH, version, context="chrome")

    def goto(self, url: str) -> None:
        self.command("WebDriver:Navigate", url=url)

    def click(self, element: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", element)

    def act(self, kind: str, *actions: dict[str, Any]) -> None:
        """Does what a person does with a keyboard or a mouse, so that pages see trusted events."""
        self.command(
            "WebDriver:PerformActions", actions=[{"type": kind, "id": kind, "actions": actions}]
        )

    def waits_for_answers(self, number: int) -> bool:
        """Waits until the page's script has that many answers."""
        return comes_true(lambda: self.run(ANSWERS) >= number)


@contextmanager
def firefox(**preferences: Any) -> Iterator[Firefox]:
    """Starts Firefox with these preferences (`_` for `.`). Skips the test where there is none, save
    in CI.
    """
    program = shutil.which("firefox-esr") or shutil.which("firefox") or ""
    if not program:
        reason = "no Firefox on this machine (Debian: apt install firefox-esr)"
        pytest.fail(reason) if os.environ.get("READTRACK_CI") else pytest.skip(reason)
    with TemporaryDirectory(
        ignore_cleanup_errors=True
    ) as name:  # its last process writes for a moment longer
        folder = Path(name)
        own = {key.replace("_", "."): value for key, value in preferences.items()}
        lines = (
            f'user_pref("{key}", {json.dumps(value)});\n'
            for key, value in {**PREFERENCES, **own}.items()
        )
        (folder / "user.js").write_text("".join(lines))
        command = [
            program,
            "--headless",
            "--marionette",
            "--remote-allow-system-access",
            "--profile",
            name,
        ]
        environment = {**os.environ, "HOME": name, "MOZ_CRASHREPORTER_DISABLE": "1"}
        child = Child(command, log=folder / "log", env=environment)
        try:
            port = folder / "MarionetteActivePort"
            assert comes_true(lambda: port.exists() and bool(port.read_text())), child.last_lines()
            address = ("127.0.0.1", int(port.read_text()))
            with (
                socket.create_connection(address, ENOUGH) as connection,
                connection.makefile("rb") as file,
            ):
                yield Firefox(connection, file)
        finally:
            child.stop()
