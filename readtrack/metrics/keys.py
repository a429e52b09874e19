"""The keys that the estimate of the memory adds to the table of keys."""

from readtrack.store.keys import MINUTE, Key

weighed = Key(
    "budget:{nonce}:{kind}",
    "any",
    MINUTE,
    "written, weighed and removed by `readtrack budget`",
    divided="left",
    is_used=lambda: False,
)
