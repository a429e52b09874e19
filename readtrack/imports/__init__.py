"""Moving in: the views that a web server's log or another app has counted, each taken over exactly
once.
"""
