"""A deploy of some seconds. `python -m tests.rolling` is a long one."""

from typing import Any

import pytest

from tests.rolling.run import NEW, OLD, Plan, Result, Rolling
from tests.rolling.wheels import NoHistoryError
from tests.support.depth import DEEP

ACTS = ("view", "report", "finish", "step", "read", "publish")
# Changes that must not come between two versions, and a word of what the driver says of them.
CHANGES = [
    ("store/keys.py", '"views:total:{subject}"', '"views:sum:{subject}"', "SQL has"),
    ("store/keys.py", '"category:{subject}:read"', '"category:{subject}:seen"', "dots"),
    ("store/keys.py", '"funnel:{subject}"', '"passes:{subject}"', "passes were done"),
    ("script/keys.py", '"reading:{subject}"', '"reads:{subject}"', "reads of post"),
    ("store/lua/record.lua", "local rate, unsettled,", "local unsettled, rate,", ""),
    ("layouts.py", "SIGNED = 1", "SIGNED = 2", "/readtrack/page.js 403"),
    ("layouts.py", '"cookie1"', '"cookie2"', "A visitor with a cookie of another process"),
    ("layouts.py", "KNOWN = 1", "KNOWN = 0", "layout 1, which a newer version"),
]


def deploy(**plan: Any) -> Result:
    """Deploys the checkout over the last version. Skips the test without that version."""
    try:
        return Rolling(Plan(**plan)).run()
    except NoHistoryError as error:
        pytest.skip(f"git does not have the older version: {error}")


def test_views_and_dots_are_equal_while_one_version_follows_another() -> None:
    result = deploy(seconds=10)
    assert result.problems == []
    assert result.views > 0
    for act in ACTS:
        for version in (OLD, NEW):
            assert result.acts[f"{act} by {version}"] > 0


@pytest.mark.skipif(not DEEP, reason="each takes half a minute: READTRACK_DEEP=1")
@pytest.mark.parametrize(("file", "before", "after", "notices"), CHANGES[:: 3 if DEEP == 1 else 1])
def test_the_driver_notices_versions_that_do_not_get_along(
    file: str, before: str, after: str, notices: str
) -> None:
    result = deploy(seconds=10, changes={f"readtrack/{file}": (before, after)})
    assert notices in "\n".join(result.problems)
