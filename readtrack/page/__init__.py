"""Counts and dots in a page: tags leave placeholders, and the finished page is filled in."""
