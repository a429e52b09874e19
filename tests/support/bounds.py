"""The bound of the read state of a category, which a test makes smaller."""

from readtrack import conf

MOST_BITS = conf.MOST_BITS


def set_most_bits(bits: int) -> None:
    """Lets the read state of a category have so many bits. The fixture `redis` sets them back."""
    if bits == conf.MOST_BITS:
        return
    conf.MOST_BITS = bits
    for _, forget in conf._forgetting:
        forget()
