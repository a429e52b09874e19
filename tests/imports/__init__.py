"""Tests of the imports, with a site's paths and logs of their own."""
