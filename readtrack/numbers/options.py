"""The setting NUMBERS: what is stored by time and by value, and what numbers go by."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from readtrack.conf import cached_setting, conf, with_defaults


class NumbersOptions(NamedTuple):
    """The keys of NUMBERS, their types and their defaults."""

    #: False stores totals only, and no numbers of a time.
    history: bool = True
    #: Days of history with every hour.
    days: int = 90
    #: Years of history, whose older days have one total each; 0: all.
    years: int = 0
    #: What views are divided by: these, device, browser, os, country, or dotted paths of callables;
    #: (): nothing.
    dimensions: Sequence[str] = ("channel", "referrer", "campaign")
    #: Header in which a trusted proxy names the visitor's country, such as "CF-IPCountry".
    country_header: str = ""
    #: More hosts whose pages are "internal" sources: "shop.example.com", or ".example.com" with all
    #: below.
    own_hosts: Sequence[str] = ()
    #: Stages in their order; the first stage is a view.
    funnel: Sequence[str] = ("view", "click", "convert")
    #: Every view enters its subject's funnel; a model's has_funnel comes first.
    funnels: bool = False
    #: What rankings and trending go by; seen: views whose page came to life in a browser, which
    #: needs the script.
    rank_by: Literal["views", "seen"] = "views"
    #: The dashboard says what to do next, by rules that can be read.
    advice: bool = True


@cached_setting(maxsize=1)
def numbers_options() -> NumbersOptions:
    """Returns the values of NUMBERS, with defaults for those that the site leaves out."""
    return with_defaults(conf.of_part("NUMBERS"), NumbersOptions)


def enters_funnel(model: type[Any] | None) -> bool:
    """Returns True if a view of the model enters a funnel."""
    has_funnel = getattr(model, "has_funnel", None)  # see NumbersOfModel
    if has_funnel is None:
        return numbers_options().funnels
    return bool(has_funnel)
