"""The ASGI entry point."""

import os

from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demo_project.settings")

# A demo has no web server in front of it that would serve the style sheets.
application = ASGIStaticFilesHandler(get_asgi_application())
