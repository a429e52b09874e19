"""A page sends its own hit, unless a part has another way."""

import pytest
from pytest_django import Settings

from readtrack import reports, tracker
from readtrack.hits.hit import Hit, Outcome
from readtrack.store.sending import Sending
from readtrack.subjects import subject_of
from tests.store.trial_part.apps import TrialConfig
from tests.support import factories

pytestmark = pytest.mark.django_db


class Later(Sending):
    """Keeps the hits of pages, and the skips."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []

    def take(self, hit: Hit) -> Outcome:
        self.hits.append(hit)
        return Outcome(queued=hit.views)

    def take_skips(self) -> bool:
        return True


@pytest.fixture
def later(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Later:
    """Installs a part that keeps what pages send."""
    later = Later()
    monkeypatch.setattr(TrialConfig, "sending", lambda part: later)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.store.trial_part"]
    return later


def test_a_page_sends_its_own_hit_and_the_skips() -> None:
    post = factories.post()
    factories.browser().get(f"/posts/{post.pk}/")
    assert reports.views([post]) == {post: 1}
    tracker.skip(["site.post:1"], "bot")
    assert reports.skips()["bot"] == 1


def test_a_part_takes_the_hits_of_pages_and_the_skips(later: Later, settings: Settings) -> None:
    post = factories.post()
    settings.READTRACK = {"DEBUG_HEADER": True}
    page = factories.browser().get(f"/posts/{post.pk}/")
    assert page["X-Readtrack"] == "queued"
    assert [hit.views for hit in later.hits] == [(subject_of(post),)]
    assert reports.views([post]) == {post: 0}
    tracker.skip(["site.post:1"], "bot")
    assert reports.skips()["bot"] == 0
