"""The setting NUMBERS: what is stored by time and by value, and what numbers go by."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from readtrack.conf import cached_setting, conf, with_defaults


class NumbersOptions(NamedTuple):
    """The keys of NUMBERS, their types and their defaults."""

    # fmt: off
    history: bool = True  # False stores totals only, and no numbers of a time
    days: int = 90  # days of history with every hour
    years: int = 0  # years of history, whose older days have one total each; 0: all
    dimensions: Sequence[str] = ("channel", "referrer", "campaign")  # what views are divided by: these, device, browser, os, country, or dotted paths of callables; (): nothing
    own_hosts: Sequence[str] = ()  # more hosts whose pages are "internal" sources: "shop.example.com", or ".example.com" with all below
    funnel: Sequence[str] = ("view", "click", "convert")  # stages in their order; the first stage is a view
    funnels: bool = False  # every view enters its subject's funnel; a model's has_funnel comes first
    rank_by: Literal["views", "seen"] = "views"  # what rankings and trending go by; seen: views whose page came to life in a browser, which needs the script
    advice: bool = True  # the dashboard says what to do next, by rules that can be read
    # fmt: on


@cached_setting(maxsize=1)
def numbers_options() -> NumbersOptions:
    """Returns the values of NUMBERS, with defaults for those that the site leaves out."""
    return with_defaults(conf.of_part("NUMBERS"), NumbersOptions)


def enters_funnel(model: type[Any] | None) -> bool:
    """Returns True if a view of the model enters a funnel."""
    has_funnel = getattr(model, "has_funnel", None)
    return numbers_options().funnels if has_funnel is None else bool(has_funnel)
