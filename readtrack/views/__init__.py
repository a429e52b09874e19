"""What the HTTP endpoints of parts have in common: their errors, and reading a body."""
