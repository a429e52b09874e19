"""A small site that uses readtrack, for the tests."""
