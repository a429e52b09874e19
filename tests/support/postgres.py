"""A PostgreSQL of another version than that of the wheel."""

from __future__ import annotations

import shutil
from pathlib import Path

from demo_project.engines.postgres import Postgres


class OtherPostgres(Postgres):
    """A server whose programs are in the folder `bin` of an installation."""

    # Before version 16, initdb takes no settings.
    login = ("--auth=scram-sha-256",)

    def __init__(self, installation: Path) -> None:
        super().__init__()
        self._installation = installation

    def _programs(self) -> Path:
        """Returns the folder of the programs; as root that of a copy, which other users can read."""
        if not self.user:
            return self._installation / "bin"
        copied = self.folder / "programs"
        if not copied.exists():
            shutil.copytree(self._installation, copied, symlinks=True)
        return copied / "bin"
