"""System checks: what can be set up wrongly, found without touching a network.

Each file is about one subject. A check is a function that returns messages with their hints;
`setup.py` lists the functions, and calls them for `manage.py check`.
"""
