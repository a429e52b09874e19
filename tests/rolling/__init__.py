"""A rolling deploy: an older and a newer version of the app work on one Redis and one database."""
