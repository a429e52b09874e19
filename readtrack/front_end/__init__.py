"""The part "front end": what is unread as JSON, and marking it read.

`views.py` has the two endpoints, which a site's own views may call, `errors.py` what they refuse.
"""
