"""The Daily Reader: a small newsroom that uses readtrack the way any site would.

Its settings, URLs and Celery app are here, the site itself is the app `blog`, and `traffic` sends
it simulated visitors. Nothing third-party is imported here: the package has to load on a machine
where nothing is installed yet.
"""
