"""Pages that a later request tells of again: what the part decides whose requests these are.

Such a request is a report. A page says by `Recorder.is_reported_later` that one may come, and
`Recorder.report` is what it tells.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from django.http import HttpRequest

from readtrack.hits.visitors import Visitor
from readtrack.page.placeholders import Placeholder
from readtrack.reports.page_state import PageState

if TYPE_CHECKING:
    from readtrack.page.rendering import Delivery


class NamedPage(NamedTuple):
    """What a page says of itself in its own content."""

    path: str  # its beginning
    is_shared: bool  # the page is the same for everybody
    as_of: int  # the time (µs of Redis's clock) from which on publications are not in the page
    views: tuple[str, ...]  # subjects
    reads: tuple[str, ...]  # subjects


class Reporting:
    """What a part decides about pages and the reports on them."""

    def is_shared(self, request: HttpRequest) -> bool:
        """Returns True if the settings say that the page is the same for everybody."""
        raise NotImplementedError

    def counts_views(self) -> bool:
        """Returns True if a report may count the views of its page."""
        raise NotImplementedError

    def page_in(self, content: bytes, *, path: str) -> NamedPage | None:
        """Returns what a page out of a cache says of itself; None if it says nothing."""
        raise NotImplementedError

    def takes_over(self, request: HttpRequest, *, is_shared: bool) -> bool:
        """Returns True if the views and reads of a page are left to the report on it. It is the
        same for everybody, or may be reported later.
        """
        raise NotImplementedError

    def takes_views(self) -> bool:
        """Returns True if only a report records the views of a page that it will tell of."""
        raise NotImplementedError

    def takes_reads(self, content: bytes) -> bool:
        """Returns True if only a report records the reads of a page with that content."""
        raise NotImplementedError

    def is_seen(self, request: HttpRequest, visitor: Visitor) -> bool:
        """Returns True if the report says that its page was seen."""
        raise NotImplementedError

    def explanation(self, *, is_reported_later: bool) -> str:
        """Returns what the header X-Readtrack says of a page whose activity is left to a report."""
        raise NotImplementedError

    def rendered(
        self,
        html_by_text: Mapping[bytes, str],
        placeholders: Mapping[bytes, Placeholder],
        state: PageState,
        delivery: "Delivery",
    ) -> dict[bytes, str]:
        """Returns the HTML of the placeholders for which reports are a reason to change it.

        `html_by_text` has the HTML of all placeholders of a page, or of the answer to a report.
        """
        raise NotImplementedError
