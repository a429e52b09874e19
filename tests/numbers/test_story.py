"""How a story does: by the multiple of its usual views, its reads, and its last whole days."""

import inspect
import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import product

import pytest

from readtrack import buckets, local_time
from readtrack.flush.run import flush
from readtrack.numbers import words, words_of_story
from readtrack.numbers.filters import Chosen
from readtrack.numbers.loading import load
from readtrack.numbers.models import History
from readtrack.numbers.scope import Scope
from readtrack.numbers.story import StoryVerdict, Trend, UsualOfStory, story_verdict_of
from readtrack.numbers.usual import word_of
from readtrack.numbers.words_of_story import lead_of_story
from readtrack.subjects import subject_of
from tests.site.models import Article
from tests.support import factories, usual
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
    ("views", "per_cent"), [((50, 40), -20), ((50, 60), 20), ((50, 41), None), ((0, 40), None)]
)
def test_the_last_day_that_is_over_stands_beside_the_day_before(
    views: tuple[int, int], per_cent: int | None
) -> None:
    usual.begin()
    article = Article.objects.create(published_at=buckets.now() - 5 * buckets.DAY)
    absolute = 0
    for age, count in ((5, 900), (2, views[0]), (1, views[1]), (0, 7)):
        absolute += count
        hour = local_time.first_hour_of(local_time.today() - age * buckets.DAY)
        row = {"subject": subject_of(article), "views": absolute, "visitors": 0}
        History.objects.create(hour=hour, **row)
    for period in ("published", "7"):
        trend = verdict(article, period=period).trend
        assert (trend.per_cent if trend else None) == per_cent


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
    for reads in (2, 25, 33, 50, 51):
        yield StoryVerdict(is_known=True, views=9, reads=reads)
    for trend in (Trend(10, 20), Trend(20, 10)):
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
        if verdict.word:
            assert re.search(r"\d", said.sentences[0].text)
        assert said.tone in ("", "up", "down")
    assert lead_of_story(StoryVerdict(is_known=False)) == words.SILENT
