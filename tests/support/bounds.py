"""The bound of the read state of a category, which a test makes smaller."""

from readtrack import conf
from readtrack.hits import readers

MOST_BITS = readers.MOST_BITS


def set_most_bits(bits: int) -> None:
    """Lets the read state of a category have so many bits. The fixture `redis` sets them back."""
    if bits == readers.MOST_BITS:
        return
    readers.MOST_BITS = bits
    for _, forget in conf._forgetting:
        forget()
