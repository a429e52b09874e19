"""Template tags; `{% load readtrack %}`."""
