"""Checks that something can run the tasks that CELERY_BEAT_SCHEDULE has."""

from importlib import import_module
from importlib.util import find_spec

from django.core import checks

from readtrack.schedule import is_in_beat


def check_celery() -> list[checks.CheckMessage]:
    """Checks that the project has Celery and an application, if Celery's beat is to flush."""
    if not is_in_beat():
        return []
    if not find_spec("celery"):
        return [
            checks.Warning(
                "CELERY_BEAT_SCHEDULE has the tasks of readtrack, but Celery is not installed.",
                hint=(
                    "Install it: pip install 'readtrack[celery]'. Without Celery, leave"
                    " readtrack_schedule out, and run `manage.py readtrack schedule`."
                ),
                id="readtrack.W089",
            )
        ]
    # Without an application of the site, Celery makes one by itself, which is not set as current.
    if import_module("celery").current_app.set_as_current:
        return []
    return [
        checks.Warning(
            "CELERY_BEAT_SCHEDULE has the tasks of readtrack, but this project has no application"
            " of Celery, so nothing runs them.",
            hint=(
                "Make one in celery.py beside the settings: app = Celery('mysite');"
                " app.config_from_object('django.conf:settings', namespace='CELERY');"
                " app.autodiscover_tasks(). Import it in the __init__.py there, and run: celery -A"
                " mysite worker -B. Without Celery, leave readtrack_schedule out, and run"
                " `manage.py readtrack schedule`."
            ),
            id="readtrack.W088",
        )
    ]
