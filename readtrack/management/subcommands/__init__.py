"""The subcommands of `manage.py readtrack`, a file for each."""
