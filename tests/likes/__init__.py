"""A part that no site has: it keeps something of its own about subjects and visitors."""
