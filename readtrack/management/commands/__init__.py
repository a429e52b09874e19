"""`manage.py readtrack`."""
