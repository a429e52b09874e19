"""System checks of the settings and of the site's models."""
