"""Tests in a site of Wagtail. They need its apps, so tests/contrib/test_wagtail.py runs them with
settings of their own.
"""
