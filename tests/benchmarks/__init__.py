"""How fast it is, as ratios within one run: `python3 manage.py benchmark`."""
