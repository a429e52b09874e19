"""`python -m tests.support.flusher`: flushes once for each line it reads, in a fork that may be
killed.
"""

import os
import sys
import traceback

import django


def main() -> None:
    """Prints the process id of each fork, then its exit code."""
    django.setup()
    from django.db import connection, connections

    from readtrack.flush.run import flush
    from readtrack.store.connection import connect

    # What is imported here, no fork has to import.
    connection.ensure_connection()
    connections.close_all()
    connect(patient=True).close()
    for _ in sys.stdin:
        if not (fork := os.fork()):
            try:
                flush()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        say(fork)
        say(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]))


def say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
