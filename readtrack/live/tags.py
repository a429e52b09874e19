"""The tag of live dots, for Django's templates and for Jinja2."""

from functools import partial
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from readtrack.live import options
from readtrack.live.script import LiveDotsAddition
from readtrack.script import tags


def live(context: Any, *, title: bool = False, badge: bool = False) -> str:
    """`{% readtrack_live %}`, in place of `{% readtrack_script %}`, also lets dots come on and go
    out without a reload.

    With `title=True` the tab's title shows the number of unread items on the page, with
    `badge=True` the icon of the site's app shows it.
    """
    attributes = partial(_attributes, has_title=title, has_badge=badge)
    return tags.script_with(context, LiveDotsAddition.option, attributes)


def _attributes(*, has_title: bool, has_badge: bool) -> SafeString:
    """Returns the attributes of the script's tag that say how the page's dots are kept up to
    date.
    """
    attributes = format_html(' data-news="{}"', reverse("readtrack:news"))
    events = options.events()
    if events:
        attributes += format_html(' data-events="{}"', events)
    if has_title:
        attributes += SafeString(" data-title")
    if has_badge:
        attributes += SafeString(" data-badge")
    return attributes
