"""`python -m tests.unread.victim FORM`: saves posts for each line it reads, in a fork that
dies at a step.
"""

import sys
from typing import Any

import django
from django.conf import settings

from tests.imports import victim


def main() -> None:
    """Saves posts. After the step a line has the category's primary key and the number of posts."""
    dots: Any = settings.READTRACK.get("DOTS", {})
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**dots, "form": sys.argv[1]},
    }
    django.setup()
    from django.db import transaction

    from tests.site.models import Post

    victim.FUNCTIONS |= {"_commit", "run_and_clear_commit_hooks"}

    def save(rest: str) -> None:
        category, count = map(int, rest.split())
        if count == 1:
            Post.objects.create(title="x", category_id=category)
            return
        with transaction.atomic():
            for _ in range(count):
                Post.objects.create(title="x", category_id=category)

    victim.serve(save)


if __name__ == "__main__":
    main()
