"""A small forum, whose threads have read state by reader."""
