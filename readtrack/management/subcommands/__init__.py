"""The words of `manage.py readtrack`, a file for each."""
