"""How the hits of pages get to Redis: each page sends its own, unless a part has another way."""

from readtrack import parts
from readtrack.conf import cached_setting
from readtrack.hits.hit import Hit, Outcome


class Sending:
    """Lets each page send its own hit. A part that sends hits in another way extends this class."""

    # False if the visitors of hits need not have the ids that `Hit.named` computes.
    needs_named_visitors = True

    def begin(self) -> None:
        """Is called in each process before its first page is made."""

    def take(self, hit: Hit) -> Outcome | None:
        """Takes a hit over, to send it later, and returns its outcome, whose views are `queued`.

        Returns None for a hit that its page is to record.
        """
        return None

    def take_skips(self) -> bool:
        """Returns True if the skips that wait are sent later, and False if the caller has to send
        them.
        """
        return False


@cached_setting("INSTALLED_APPS", maxsize=1)
def sending() -> Sending:
    """Returns how the hits of this site are sent: as a part says, or else each by its page."""
    return next(filter(None, (part.sending() for part in parts.installed())), Sending())
