"""A process of the site: does one thing, and prints as JSON what it cost.

python -m weighed_site.probe start
"""

import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import django

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def start() -> dict[str, Any]:
    """Starts Django. Returns processor time (s), resident memory (bytes), and modules after it."""
    began = process_time()
    django.setup()
    seconds = process_time() - began
    return {"seconds": seconds, "memory": resident_memory(), "modules": modules()}


def prepare() -> dict[str, Any]:
    """Makes the tables, a user, a category, and a post that is news for nothing. Returns the tables
    of readtrack, each with the number of its indexes, and the number of settings.
    """
    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    from readtrack.conf import ANNOTATIONS

    call_command("migrate", verbosity=0, run_syncdb=True)
    get_user_model().objects.create(pk=1, username="ann")
    model("Category").objects.create(pk=1)
    model("Post").objects.create(pk=1)
    return {"indexes": indexes(), "settings": len(ANNOTATIONS)}


def page() -> dict[str, Any]:
    """Serves the page of the post. Returns the modules after it."""
    django.setup()
    view()
    return {"modules": modules()}


def flush() -> dict[str, Any]:
    """Flushes as Celery does. Returns the modules after it, and the post's views in SQL."""
    django.setup()
    from readtrack.tasks import run_job

    run_job("flush-changed")
    return {"modules": modules(), "views": model("Post").objects.get(pk=1).view_count}


def command() -> dict[str, Any]:
    """Flushes by the command. Returns the modules after it."""
    django.setup()
    flush_changes()
    return {"modules": modules()}


def rows() -> dict[str, Any]:
    """Returns the names of the tables that have rows after each act, by the name of the act."""
    django.setup()
    acts = {
        # The first flush of a site writes everything, so it comes before there is anything.
        "the first flush": full_flush,
        "a view": view,
        "a read": read,
        "a publication": publish,
        "a flush of changes": flush_changes,
        "a full flush": full_flush,
        "an archive": archive,
    }
    filled = {}
    for name, act in acts.items():
        act()
        filled[name] = [table for table, rows in tables() if rows.exists()]
    return filled


def view() -> None:
    """A visitor without an account views the post."""
    client().get("/posts/1/")


def read() -> None:
    """A user reads the category."""
    from django.contrib.auth import get_user_model

    signed_in = client()
    signed_in.force_login(get_user_model().objects.get(pk=1))
    signed_in.get("/categories/1/")


def publish() -> None:
    """A new post is news for the category."""
    model("Post").objects.create(category_id=1)


def flush_changes() -> None:
    """Writes the counts that changed to SQL."""
    from django.core.management import call_command

    call_command("readtrack", "flush", "--changed", verbosity=0)


def full_flush() -> None:
    """Writes all counts to SQL."""
    from django.core.management import call_command

    call_command("readtrack", "flush", "--full", verbosity=0)


def archive() -> None:
    """Writes all counts to SQL, and what is archived once a day. Does nothing in a version that has
    this function elsewhere, because there is no public name for it.
    """
    with suppress(ImportError):
        from readtrack.flush.run import flush

        flush(must_archive=True)


def client() -> Any:
    """Returns a client that looks like a browser. It raises what a page raises."""
    from django.test import Client

    return Client(headers={"User-Agent": BROWSER})


def model(name: str) -> Any:
    """Returns the site's model of that name."""
    from django.apps import apps

    return apps.get_model("weighed_site", name)


def tables() -> Iterator[tuple[str, Any]]:
    """Yields the name and all rows of each table of readtrack and its parts."""
    from django.apps import apps

    for config in apps.get_app_configs():
        if config.name.partition(".")[0] == "readtrack":
            for found in config.get_models(include_auto_created=True):
                if found._meta.managed and not found._meta.proxy:
                    yield found._meta.object_name or "", found._base_manager.all()


def indexes() -> dict[str, int]:
    """Returns the number of indexes of each table, with those of primary keys and constraints."""
    from django.db import connection

    numbers = {}
    with connection.cursor() as cursor:
        for table, rows in tables():
            name = rows.model._meta.db_table
            constraints = connection.introspection.get_constraints(cursor, name).values()
            # By their columns, because SQLite names some of them twice.
            columns = {
                tuple(found["columns"])
                for found in constraints
                if found["index"] or found["unique"] or found["primary_key"]
            }
            numbers[table] = len(columns)
    return numbers


def modules() -> dict[str, str]:
    """Returns the files of the imported modules of readtrack by name, without migrations."""
    return {
        name: str(module.__file__)
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] == "readtrack" and ".migrations" not in name
    }


def resident_memory() -> int:
    """Returns the memory of this process (bytes): at present, or at most where /proc is missing."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        pages = int(statm.read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


ACTIONS = {action.__name__: action for action in (start, prepare, page, flush, command, rows)}

if __name__ == "__main__":
    print(json.dumps(ACTIONS[sys.argv[1]]()))  # noqa: T201 - tests/weight.py reads it
