"""Imports: views in a web server's logs, or those that another app has counted. Each view is taken
over exactly once.
"""
