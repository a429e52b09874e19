"""A part with keys of its own in each counted view."""
