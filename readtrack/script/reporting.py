"""Which views and reads of a page are left to its script."""

from collections.abc import Mapping

from django.http import HttpRequest

from readtrack.hits import networks, origins
from readtrack.hits.visitors import Visitor
from readtrack.page.placeholders import PAGE, PAGE_MARK, TEXT_MARK, Placeholder, placeholders_in
from readtrack.page.rendering import Delivery
from readtrack.page.reporting import NamedPage, Reporting
from readtrack.reports.page_state import PageState
from readtrack.script import options, rendering, shown


class ScriptReporting(Reporting):
    """What the part decides about pages that their scripts report."""

    def is_shared(self, request: HttpRequest) -> bool:
        paths = options.shared_paths()
        return bool(paths) and any(path.search(request.path_info) for path in paths)

    def counts_views(self) -> bool:
        return options.count_by() != "server"

    def page_in(self, content: bytes, *, path: str) -> NamedPage | None:
        """Returns what a page out of `cache_page` shows; None if its content does not say it."""
        if PAGE_MARK not in content:
            return None
        for placeholder in placeholders_in(content).values():
            if placeholder.kind != PAGE:
                continue
            page = shown.parse(placeholder.subject)
            # Otherwise a fragment was cached with the script of another page in it.
            if page.path == path[: shown.LONGEST_PATH]:
                return page
        return None

    def takes_over(self, request: HttpRequest, *, is_shared: bool) -> bool:
        """Returns True for a page that is the same for everybody, and for one that was fetched and
        may never be looked at.
        """
        if options.count_by() == "server":
            return False
        return is_shared or origins.may_be_ahead(request.META)

    def takes_views(self) -> bool:
        return options.count_by() == "script"

    def takes_reads(self, content: bytes) -> bool:
        return self.takes_views() or (options.reads_when_read() and TEXT_MARK in content)

    def is_seen(self, request: HttpRequest, visitor: Visitor) -> bool:
        """Returns True for the report that the page came to life.

        A report on the page's text needs no such word: an engaged view is seen by itself. From a
        doubtful network only an engaged view is seen, unless the user is signed in.
        """
        return visitor.kind == "user" or not networks.is_doubtful(request.META)

    def explanation(self, *, is_reported_later: bool) -> str:
        return "left to the script" if is_reported_later else "no script"

    def rendered(
        self,
        html_by_text: Mapping[bytes, str],
        placeholders: Mapping[bytes, Placeholder],
        state: PageState,
        delivery: Delivery,
    ) -> dict[bytes, str]:
        return rendering.rendered(html_by_text, placeholders, state, delivery)
