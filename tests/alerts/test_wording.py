"""Numbers in the words of alerts."""

from readtrack.alerts.models import Alert


def test_usual_views_are_whole_and_never_0() -> None:
    assert Alert(usual=1_234.4).usual_text == "1,234"
    assert Alert(usual=0.276).usual_text == "< 1"
    assert Alert(usual=0.0).usual_text == "< 1"
    assert Alert().usual_text == ""
