"""Tests of the imports, with URLs and logs of their own."""
