"""The keys that alerts add to the table of keys."""

from readtrack.store.keys import Key

since = Key("alerts:since", "string", 0, "since when alerts have looked at this Redis (µs)")
