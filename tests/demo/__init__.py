"""Tests of the demo site. It has settings of its own, so it runs in processes of its own."""
