"""The tests' settings, with chunks so small that a flush has many steps to be killed in."""

from tests.settings import *  # noqa: F403

READTRACK = {"FLUSH_CHUNK": 8}
