"""What `manage.py readtrack` can do: a module for each word, with `help`, `add_arguments` and `run`."""
