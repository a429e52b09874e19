"""How a story does: by the multiple of its usual views, its reads, and its last whole days."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from readtrack import buckets
from readtrack.flush.run import flush
from readtrack.numbers import local_time, words, words_of_story
from readtrack.numbers.filters import Chosen
from readtrack.numbers.loading import load
from readtrack.numbers.models import History
from readtrack.numbers.rising import Rising
from readtrack.numbers.scope import Scope
from readtrack.numbers.story import StoryVerdict, Trend, UsualOfStory, story_verdict_of
from readtrack.numbers.usual import word_of
from readtrack.numbers.words_of_story import lead_of_story
from readtrack.subjects import subject_of
from tests.site.models import Article
from tests.support import digests, factories, usual
from tests.support.rows import each_row
from tests.test_locale import of_code

FILTERS = (Chosen("country", "Country", "DE"),)


def verdict(article: Article, **asked: str) -> StoryVerdict:
    fixed = {"object": subject_of(article)}
    scope = Scope.parse(asked, fixed=fixed, published=article.published_at)
    return story_verdict_of(load(scope, ["over-time"], row_limit=10, obj=article))


@each_row(
    ("times", "word"),
    [
        (8.1, "far above"),
        (3.0, "far above"),
        (2.99, "above"),
        (1.5, "above"),
        (1.49, "usual"),
        (0.68, "usual"),
        (0.67, "below"),
        (0.34, "below"),
        (0.33, "far below"),
        (0.0, "far below"),
    ],
)
def test_a_multiple_of_the_usual_has_a_word(times: float, word: str) -> None:
    assert word_of(times) == word


@pytest.mark.django_db
def test_a_story_is_compared_with_its_section_at_its_age() -> None:
    section = factories.category(name="Politics")
    usual.peers(views=20, category=section)
    article = usual.article(timedelta(hours=50), views=64, category=section)
    flush()
    usual.renew()
    found = verdict(article)
    assert found.usual is not None
    assert (found.usual.views, found.usual.usual, found.usual.times) == (64, 20, 3.2)
    assert (found.word, found.is_since_publication, found.reads) == ("far above", True, None)
    text = lead_of_story(found).text
    assert text.startswith(
        "Far better than usual. It has 64 views after 2 days, where articles in Politics have"
        " about 20."
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("views", "others", "per_cent"),
    [
        ((500, 400), (900, 900), -20),
        ((500, 600), (900, 900), 20),
        ((500, 410), (900, 900), None),
        # So few that the difference may be chance.
        ((5, 2), (900, 900), None),  # before: -60
        ((50, 60), (900, 900), None),
        ((29, 1), (900, 900), None),
        ((30, 10), (900, 900), -67),
        ((0, 40), (900, 900), None),
        ((50, 40), (0, 900), None),
        # The rest of the site is too small to say anything.
        ((50, 20), (3, 2), None),
        ((50, 20), (99, 99), None),
        ((50, 20), (100, 100), -60),
        # The rest of the site changed, and the story hardly did.
        ((1_000, 997), (1_000, 1_300), None),
        ((1_000, 1_003), (1_000, 710), None),
        # A weekend: the whole site has fewer.
        ((100, 59), (1_000, 710), None),
        ((100, 40), (1_000, 710), -60),
        ((40, 20), (1_000, 650), None),  # as the others it had 26; before: -50
        # And a Monday.
        ((100, 140), (1_000, 1_400), None),
        ((100, 200), (1_000, 1_400), 100),
        # Better than the rest, but with fewer views: neither the one nor the other.
        ((100, 90), (1_000, 500), None),
    ],
)
def test_the_last_day_that_is_over_stands_beside_the_day_before_and_the_rest_of_the_site(
    views: tuple[int, int], others: tuple[int, int], per_cent: int | None
) -> None:
    usual.begin()
    article = Article.objects.create(published_at=buckets.now() - 5 * buckets.DAY)
    absolute = 0
    of_others = 1
    for age, count, others_of_day in (
        (5, 900, 5_000),
        (2, views[0], others[0]),
        (1, views[1], others[1]),
        (0, 7, 70),
    ):
        absolute += count
        of_others += others_of_day
        hour = local_time.first_hour_of(local_time.today() - age * buckets.DAY)
        for name, number in (
            (subject_of(article), absolute),
            ("site.article", absolute + of_others),
        ):
            History.objects.create(subject=name, hour=hour, views=number, visitors=0)
    for period in ("published", "7"):
        trend = verdict(article, period=period).trend
        assert (trend.per_cent if trend else None) == per_cent


@pytest.mark.django_db
def test_who_sees_only_their_own_numbers_is_told_nothing_of_the_rest_of_the_site() -> None:
    usual.begin()
    author = factories.user(is_staff=True)
    article = Article.objects.create(published_at=buckets.now() - 5 * buckets.DAY, author=author)
    for age, absolute, of_site in ((5, 900, 5_000), (2, 1_000, 6_000), (1, 1_040, 7_000)):
        hour = local_time.first_hour_of(local_time.today() - age * buckets.DAY)
        for name, number in ((subject_of(article), absolute), ("site.article", of_site)):
            History.objects.create(subject=name, hour=hour, views=number, visitors=0)
    flush()
    address = f"/admin/readtrack/dashboard/object/{subject_of(article)}/"
    editor = factories.user(is_staff=True, is_superuser=True)
    assert "falling fast: yesterday it had 60% fewer" in factories.browser(editor).get(address).text
    page: Any = factories.browser(author).get(address)
    assert "the rest of the site" not in page.text
    assert "falling fast" not in page.text
    assert page.context["data"].site_views == []


@pytest.mark.django_db
@pytest.mark.parametrize(("views", "word"), [(29, None), (30, "far above")])
def test_few_views_are_told_beside_the_usual_and_not_judged(views: int, word: str | None) -> None:
    usual.peers(views=5)
    article = usual.article(timedelta(hours=50), views=views)
    flush()
    usual.renew()
    found = verdict(article)
    assert found.word == word
    said = f"It has {views} views after 2 days, where articles have about 5."
    assert said in lead_of_story(found).text
    assert lead_of_story(found).text.startswith(said) == (word is None)


@pytest.mark.django_db
def test_few_views_have_no_share_of_reads() -> None:
    many, few = digests.articles({"views": 30, "reads": 9}, {"views": 29, "reads": 9})
    days = {"from": f"{digests.week().first_day}", "to": f"{digests.week().last_day}"}
    assert verdict(many, **days).reads == 30
    found = verdict(few, **days)
    assert (found.views, found.reads) == (29, None)  # before: 31
    assert lead_of_story(found).text == "It had 29 views in these days."


@pytest.mark.django_db
def test_the_day_of_publication_is_no_whole_day() -> None:
    usual.begin()
    article = Article.objects.create(published_at=buckets.now() - 2 * buckets.DAY)
    for age, absolute in ((2, 10), (1, 90)):
        hour = local_time.first_hour_of(local_time.today() - age * buckets.DAY) + 23
        History.objects.create(subject=subject_of(article), hour=hour, views=absolute, visitors=0)
    assert verdict(article).trend is None


def verdicts() -> Iterator[StoryVerdict]:
    """Yields a verdict for each combination of what the words depend on."""
    for views, times, age, section in product(
        (1, 93_605), (8.1, 2.0, 1.0, 0.5, 0.1), (1.0, 5.0, 24.0, 100.0), ("", "Politics")
    ):
        compared = UsualOfStory(views, 11_600, times, age, "posts", section)
        yield StoryVerdict(is_known=True, views=views, usual=compared)
    for views, is_since, filters in product((0, 1, 9), (True, False), ((), FILTERS)):
        yield StoryVerdict(
            is_known=True, views=views, is_since_publication=is_since, filters=filters
        )
    for views in (1, 9):
        yield StoryVerdict(is_known=True, views=views, usual=compared, reads=50)
    for reads in (2, 25, 33, 50, 51):
        yield StoryVerdict(is_known=True, views=9, reads=reads)
    for views, usual_views in product((1, 184), (None, compared)):
        rising = Rising("site.post:1", views, 2.9)
        yield StoryVerdict(is_known=True, views=9, usual=usual_views, rising=rising)
    for trend in (Trend(10, 20, 90, 90), Trend(9, 20, 90, 90), Trend(20, 10, 90, 120)):
        yield StoryVerdict(is_known=True, views=9, trend=trend)


def test_each_sentence_about_a_story_is_reached() -> None:
    leads = [lead_of_story(verdict) for verdict in verdicts()]
    said = {text for one in leads for text in (one.verdict, *(s.text for s in one.sentences))}
    assert not [text for text in said if "%(" in text]
    places = {*map(str, words_of_story.PLACES.values())}
    for _context, msgid in of_code(inspect.getsource(words_of_story)):
        pattern = re.sub(r"%\\\(\w+\\\)s", ".+", re.escape(msgid))
        assert msgid in places or any(re.search(pattern, text) for text in said), msgid


def test_a_story_is_never_praised_without_a_number() -> None:
    for verdict in verdicts():
        said = lead_of_story(verdict)
        if verdict.word and not verdict.rising:
            assert re.search(r"\d", said.sentences[0].text)
        assert said.tone in ("", "up", "down")
        assert not verdict.rising or re.search(r"\d", said.verdict)
    assert lead_of_story(StoryVerdict(is_known=False)) == words.SILENT


def test_each_period_is_named_once_beside_the_numbers_of_it() -> None:
    compared = UsualOfStory(9_000, 3_000, 3.0, 480.0, "posts", "")
    verdict = StoryVerdict(is_known=True, views=120, usual=compared, reads=50)
    said = lead_of_story(verdict)
    assert [sentence.text for sentence in said.sentences] == [
        "It has 9,000 views after 20 days, where posts have about 3,000.",
        # before: "Half of its views became reads.", as if of the 9,000
        # and: "In these days it had", as if they were the 20 days
        "In the chosen period it had 120 views, 50% of which became reads.",
    ]
    said = lead_of_story(replace(verdict, is_since_publication=True))
    assert said.sentences[1].text == "Half of its views became reads."
