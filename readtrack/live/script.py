"""What a page's script does more, and is told more, where dots are live."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from readtrack.live import dots
from readtrack.page.placeholders import Placeholder
from readtrack.reports.page_state import PageState
from readtrack.script.additions import Addition, source_of
from readtrack.script.shown import TokenPage, parse


class LiveDotsAddition(Addition):
    """Keeps the dots of a page up to date."""

    name = "news"
    option = 2

    def source(self) -> bytes:
        return source_of("readtrack.live", "live.js")

    def attributes(self, elements: Sequence[Placeholder]) -> Mapping[str, str]:
        return {"data-dots": dots.name_of(dots.dots_of(elements))}

    def answer(self, page: TokenPage) -> Mapping[str, Any]:
        return {"reads": bool(parse(page.name).reads)}

    def told(self, placeholders: Sequence[Placeholder], state: PageState) -> str:
        """Returns when the dots were last published to, in JSON, and how much is unread in all.

        Returns "" without a reader.
        """
        if state.published is None:
            return ""
        # A dot whose read state is not known is not shown. Without its time the script asks for it
        # again.
        published = {
            subject: time for subject, time in state.published.items() if subject in state.unread
        }
        news = dots.dots_of(placeholders).news(published)
        return json.dumps({**news, "unread": sum(state.unread.values())})
