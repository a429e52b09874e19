"""The WSGI entry point."""

import os

from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo_project.settings")

# A demo has no web server in front of it that would serve the style sheets.
application = StaticFilesHandler(get_wsgi_application())
