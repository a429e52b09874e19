"""Tests of the demo site, which runs on its own settings and so in processes of its own."""
