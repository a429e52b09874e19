"""Wagtail: pages are counted, publishing is news, and editors see the numbers in Wagtail's
admin.
"""
