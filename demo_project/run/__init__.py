"""Behind `manage.py demo`: the servers, the site, its Celery worker and its visitors, under one
Ctrl-C.
"""
