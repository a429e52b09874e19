"""Which views and reads of a page are left to its script."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from readtrack import parts
from readtrack.hits.visitors import Visitor
from readtrack.page.placeholders import PAGE, Placeholder, placeholders_in
from readtrack.page.rendering import Delivery
from readtrack.page.reporting import NamedPage, Reporting
from readtrack.reports.page_state import PageState
from readtrack.script import options, rendering, shown

# Values of Sec-Fetch-Site.
OTHER_SITES = frozenset({"same-site", "cross-site"})

# The beginnings of placeholders.
PAGE_MARK = b"!rt!page!"
TEXT_MARK = b"!rt!text!"


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
        return is_shared or _may_be_ahead(request.META)

    def takes_views(self) -> bool:
        return options.count_by() == "script"

    def takes_reads(self, content: bytes) -> bool:
        return self.takes_views() or (options.reads_when_read() and TEXT_MARK in content)

    def is_seen(self, request: HttpRequest, visitor: Visitor) -> bool:
        """Returns True for the report that the page came to life.

        A report on the page's text needs no such word: an engaged view is seen by itself. From a
        doubtful network only an engaged view is seen, unless the user is signed in.
        """
        return visitor.kind == "user" or not _is_from_doubtful_network(request)

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


def _is_from_doubtful_network(request: HttpRequest) -> bool:
    """Returns True if a part knows that programs run in the network of the request."""
    if not parts.is_installed("readtrack.networks"):
        return False
    from readtrack.networks import lookup

    return lookup.is_doubtful(request.META)


def _may_be_ahead(meta: Mapping[str, Any]) -> bool:
    """Returns True for a page that JavaScript fetches, perhaps before anybody opens it.

    A service worker, Unpoly, swup and htmx 4 do so without saying so. htmx before 4 and Turbo say
    it of each request that is ahead. Of the answers to their other requests they may show a part
    without the page's script, so these are not left to the script.
    """
    if meta.get("HTTP_SEC_FETCH_DEST") != "empty":
        return False
    # A trusted front end on another origin does not run the page's script. But a service worker
    # that passes a navigation on sends the Sec-Fetch-Site of the navigation, which may be another.
    is_navigation = meta.get("HTTP_SEC_FETCH_MODE") == "navigate"
    if meta.get("HTTP_SEC_FETCH_SITE") in OTHER_SITES and not is_navigation:
        return False
    is_htmx_before_4 = "HTTP_HX_REQUEST" in meta and "HTTP_HX_REQUEST_TYPE" not in meta
    return not (is_htmx_before_4 or "HTTP_TURBO_FRAME" in meta)
