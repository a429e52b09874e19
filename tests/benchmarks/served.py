"""The pages of `bench_request`, for a server that runs in a process of its own: granian
tests.benchmarks.served.
"""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

from tests.benchmarks.serving import BUFFER, BUFFERED, MOUNTED, UNTRACKED

settings.ROOT_URLCONF = "tests.benchmarks.bench_request"
settings.ALLOWED_HOSTS = ["*"]
if os.environ["READTRACK_BENCHMARK"] == BUFFERED:
    settings.READTRACK = {**settings.READTRACK, "BUFFER": {"seconds": BUFFER}}
# Without the middleware, Django answers no report: what is mounted before it has to.
if os.environ["READTRACK_BENCHMARK"] in {UNTRACKED, MOUNTED}:
    settings.MIDDLEWARE = [
        name for name in settings.MIDDLEWARE if not name.startswith("readtrack.")
    ]

application: Any = get_wsgi_application()
asgi: Any = get_asgi_application()
if os.environ["READTRACK_BENCHMARK"] == MOUNTED:
    # Here, because other revisions have none of it.
    from readtrack.script.asgi import with_reports as with_reports_by_asgi
    from readtrack.script.wsgi import with_reports as with_reports_by_wsgi

    application = with_reports_by_wsgi(application)
    asgi = with_reports_by_asgi(asgi)
