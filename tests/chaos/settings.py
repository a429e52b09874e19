"""The tests' settings with small chunks, so that a flush has many steps at which it can be killed."""

from tests.settings import *  # noqa: F403

READTRACK = {"FLUSH_CHUNK": 8}
