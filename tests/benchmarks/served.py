"""The pages of `bench_request`, for a server that runs in a process of its own: granian
tests.benchmarks.served.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

from tests.benchmarks.serving import BUFFER, BUFFERED, UNTRACKED

settings.ROOT_URLCONF = "tests.benchmarks.bench_request"
settings.ALLOWED_HOSTS = ["*"]
if os.environ["READTRACK_BENCHMARK"] == BUFFERED:
    settings.READTRACK = {**settings.READTRACK, "BUFFER": BUFFER}
if os.environ["READTRACK_BENCHMARK"] == UNTRACKED:
    settings.MIDDLEWARE = [
        name for name in settings.MIDDLEWARE if not name.startswith("readtrack.")
    ]

application = get_wsgi_application()
asgi = get_asgi_application()
