"""Files that no other user can read, make first, or lead elsewhere by a link."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import IO


def append(path: Path) -> IO[bytes]:
    """Open a file of ours to add to it. Raises OSError if the path is a link."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def read(path: Path, *, begin: int = 0) -> str:
    """The text of a file of ours, from a byte on. Raises OSError if the path is a link."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        file.seek(begin)
        return file.read().decode(errors="replace")


def write(path: Path, text: str, *, reader: pwd.struct_passwd | None = None) -> Path:
    """Write a new file in place of an older one. Only the reader can read it, by default we."""
    path.unlink(missing_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "w") as file:
        file.write(text)
        if reader:
            os.fchown(number, reader.pw_uid, reader.pw_gid)
    return path
