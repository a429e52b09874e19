"""Which logs were imported before, and how far."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

from readtrack.imports import ledger
from readtrack.imports.logs import Log
from readtrack.models import Import

Span = tuple[datetime, datetime]


@dataclass(slots=True)
class Piece:
    """One file: its record, where its import goes on, and the times of other pieces of the same log."""

    log: Log
    record: Import
    position: int
    lost: int
    elsewhere: Sequence[Span]

    def see(self, at: datetime) -> None:
        """Widens the times that the record covers."""
        self.record.since = min(at, self.record.since or at)
        self.record.until = max(at, self.record.until or at)


def piece(log: Log, *, name: str = "", dry_run: bool = False) -> Piece:
    """The file, as what it was imported before or as a new one. `name` is of the log that it is a piece of."""
    record = _known(log) or Import(
        source=secrets.token_hex(8),
        name=log.name[-255:],
        first_line=_digest(log.first()),
        digest=log.digests([0])[0],
    )
    record.log = name or record.log
    resumed = ledger.resume(record, digest=lambda position: log.digests([position]).get(position), dry_run=dry_run)
    if not dry_run:
        record.save(update_fields=["log"] if record.pk else None)
    return Piece(log, record, *resumed, _elsewhere(record))


def _known(log: Log) -> Import | None:
    """A log is known by its first line and by all that was imported of it.

    One that ends before the imported position cannot be compared, and is taken for an older copy.
    """
    candidates = Import.objects.filter(first_line=_digest(log.first())).order_by("-position")
    digests = log.digests([record.position for record in candidates])
    return next((record for record in candidates if digests.get(record.position, record.digest) == record.digest), None)


def _elsewhere(record: Import) -> list[Span]:
    if not record.log:
        return []
    others = Import.objects.filter(log=record.log, since__isnull=False, until__isnull=False).exclude(pk=record.pk)
    return [(since, until) for since, until in others.values_list("since", "until") if since and until]


def unfinished(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Those with something new, from the last known one before them on, for its windows reach into the next."""
    new = next((index for index, piece in enumerate(pieces) if piece.log.has_more(piece.position)), len(pieces))
    return pieces[max(new - 1, 0) :] if new < len(pieces) else []


def _digest(line: bytes) -> str:
    return blake2b(line, digest_size=16).hexdigest()
