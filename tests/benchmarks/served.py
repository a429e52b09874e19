"""The pages of `bench_request`, for a server that runs in a process of its own: granian tests.benchmarks.served."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application

settings.ROOT_URLCONF = "tests.benchmarks.bench_request"
settings.ALLOWED_HOSTS = ["*"]
if not os.environ["READTRACK_BENCHMARK"]:
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if not name.startswith("readtrack.")]

application = get_wsgi_application()
