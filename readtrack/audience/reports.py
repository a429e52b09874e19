"""The functions with which a site asks who has read what. Nothing here writes."""

from asgiref.sync import sync_to_async

from readtrack.audience.readers import readers_of, unread_by
from readtrack.audience.while_away import Unread, unread_digest

aunread_digest = sync_to_async(unread_digest)

__all__ = ["Unread", "aunread_digest", "readers_of", "unread_by", "unread_digest"]
