"""Flushers and recorders that are killed, servers that crash, and the sum at the end: `python -m tests.chaos`."""
