"""One request: who made it, what it views, and whether it may count."""
