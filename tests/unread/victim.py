"""`python -m tests.unread.victim READ_STATE`: saves posts for each line it reads, in a fork that dies at a step."""

import os
import sys
import traceback

import django
from django.conf import settings

from tests.imports import victim


def main() -> None:
    """Prints the exit code of each fork. A line is the step, the category's primary key, and the number of posts."""
    settings.READTRACK = {**settings.READTRACK, "READ_STATE": sys.argv[1]}
    django.setup()
    from django.db import connections, transaction

    from tests.site.models import Post

    victim.FUNCTIONS |= {"_commit", "run_and_clear_commit_hooks"}
    connections.close_all()
    for request in sys.stdin:
        step, category, count = map(int, request.split())
        if not (fork := os.fork()):
            try:
                sys.setprofile(victim.Killer(step))
                if count == 1:
                    Post.objects.create(title="x", category_id=category)
                else:
                    with transaction.atomic():
                        for _ in range(count):
                            Post.objects.create(title="x", category_id=category)
                sys.setprofile(None)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
