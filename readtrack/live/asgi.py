"""Live dots at once: `application = with_events(get_asgi_application())` in asgi.py.

"events" of the setting LIVE is the path at which pages then hear of publications, by server-sent
events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from readtrack.live.server import Application

MOST_CLIENTS = 500  # streams of one process, each of which needs a file descriptor


def with_events(application: Application, *, most_clients: int = MOST_CLIENTS) -> Application:
    """Returns an ASGI application that answers the path of events, and leaves all else to
    `application`.

    It serves at most so many clients at once. Further ones are refused, and their pages poll.
    """
    # Not above, because asgi.py imports this module before Django has loaded the apps.
    from readtrack.live.server import Events

    return Events(application, most_clients=most_clients)
