"""Counts and dots in a page: placeholders that the tags leave, and filling them in."""
