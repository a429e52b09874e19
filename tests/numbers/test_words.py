"""What is said of a period: every sentence is reached, is true to its values, and has a number."""

import inspect
import re
from collections.abc import Iterator
from datetime import date, datetime, timezone
from itertools import product
from typing import Any, get_args

import pytest
from django.utils.translation import override

from readtrack.numbers import words
from readtrack.numbers.filters import Chosen
from readtrack.numbers.verdict import (
    Change,
    Kind,
    SoFar,
    TopStory,
    UsualDay,
    UsualDays,
    Verdict,
    Word,
)
from readtrack.numbers.words import Lead, lead
from tests.support.rows import each_row
from tests.test_locale import LANGUAGES, PACKAGE, PLACE, of_code, of_template

FILTERS: Any = [(), (Chosen("country", "Country", "DE"), Chosen("device", "Device", "Phone"))]
NINE = datetime(2026, 11, 29, 9, tzinfo=timezone.utc)
DAYS = [
    None,
    *(UsualDays(*days) for days in ((5, 1, 0), (2, 2, 2), (0, 1, 5), (0, 6, 0))),
    *(UsualDays(*days) for days in ((1, 0, 0), (0, 1, 0), (0, 0, 1))),
]
CHANGES = [None, 1, 13, -13, 1_250]
STORIES = [
    None,
    *(
        TopStory("site.post:1", "On <ice> 50 %", 10, share, times)
        for share, times in product((10, 25, 33, 50, 77, 100), (None, 8.12))
    ),
    *(
        TopStory("site.post:1", "On <ice> 50 %", 10, 50, times, is_of_part=True)
        for times in (None, 8.12)
    ),
]


def verdicts() -> Iterator[Verdict]:
    """Yields a verdict for each combination of what the words depend on."""
    kinds = get_args(Kind)
    of_words = (None, *get_args(Word))
    for kind, word, filters in product(kinds, of_words, FILTERS):
        yield Verdict("known", kind, views=9, word=word, days=DAYS[1], filters=filters)
    for days, views_change, views in product(DAYS, CHANGES, (1, 1_234)):
        yield Verdict("known", "week", views=views, days=days, views_change=views_change)
    for views in (1, 13_020):
        yield Verdict("known", "day", views=views, day=UsualDay(views, 11_000, 13_000))
    for views in (1, 9_192):
        so_far = SoFar(views, 8_146, NINE, date(2026, 11, 22))
        yield Verdict("known", "today", views=9_250, so_far=so_far, views_change=13)
    for name, per_cent in product(words.RISES, (5, -5, 1_250)):
        yield Verdict("known", "week", days=DAYS[1], change=Change(name, per_cent))
    for story in STORIES:
        yield Verdict("known", "week", days=UsualDays(1, 0, 0), story=story)
    for began in (None, date(2026, 11, 20)):
        yield Verdict("known", "week", is_older_than_history=True, began=began)
        yield Verdict("known", "week", is_older_than_history=True, began=began, no_band="young")
    for days_kept in (1, 20):
        yield Verdict("known", "week", no_band="deleted", days_kept=days_kept)
    for last_day, filters in product((None, date(2026, 11, 12)), FILTERS):
        yield Verdict("empty", "week", last_day=last_day, filters=filters)
    yield Verdict("nothing", "week")
    yield Verdict("storyless", "week")
    yield Verdict("silent", "week")


def texts(said: Lead) -> list[str]:
    return [said.verdict, *(sentence.text for sentence in said.sentences), *said.remarks]


def test_each_sentence_is_reached_and_no_place_is_left_open() -> None:
    said = {text for verdict in verdicts() for text in texts(lead(verdict))}
    assert not [text for text in said if "%(" in text or words.TITLE in text]
    # Of two plural forms it has the one of one.
    msgids = {msgid for _context, msgid in of_code(inspect.getsource(words))}
    assert len(msgids) > 60
    for msgid in msgids:
        pattern = re.sub(r"%\\\(\w+\\\)s", ".+", re.escape(msgid))
        pattern = pattern.replace(r"full\ day,", r"full\ days,")  # one day is not of two kinds
        assert any(re.fullmatch(pattern, text) for text in said), msgid


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_nothing_is_praised_without_a_number(language: str) -> None:
    with override(language.replace("_", "-").lower()):
        for verdict in verdicts():
            said = lead(verdict)
            if said.verdict and verdict.word:
                assert re.search(r"\d", said.sentences[0].text), said.text
            for sentence in said.sentences:
                assert sentence.before


@each_row(
    ("verdict", "expected"),
    [
        (
            Verdict(
                "known",
                "week",
                word="good",
                days=UsualDays(5, 1, 0),
                change=Change("reads", 13),
                story=TopStory("site.post:1", "Listening to a glacier", 93_598, 33, 8.1),
            ),
            "A good week. Views were above usual on 5 of 6 full days. Reads rose by 13%. A third of"
            " all views went to one story: Listening to a glacier, 8.1 times its usual.",
        ),
        (
            Verdict(
                "known",
                "month",
                views=1_234,
                word="quiet",
                views_change=-12,
                story=TopStory(
                    "site.post:1", "Listening to a glacier", 617, 50, None, is_of_part=True
                ),
                filters=FILTERS[1],
            ),
            "A quiet month for DE; Phone. There were 1,234 views, 12% fewer than before. 50% of these"
            " views went to one story: Listening to a glacier.",
        ),
        (
            Verdict("known", "today", word="usual", day=UsualDay(12_345, 11_000, 13_000)),
            "A usual day so far. There were 12,345 views, where 11,000 to 13,000 are usual.",
        ),
        (
            Verdict("known", "period", views=5, filters=FILTERS[1]),
            "Only DE; Phone. There were 5 views.",
        ),
        (
            Verdict("empty", "week", last_day=date(2026, 11, 12)),
            "No views in these days. The last one was on Nov. 12, 2026.",
        ),
        (Verdict("silent", "week"), ""),
    ],
)
def test_what_is_said(verdict: Verdict, expected: str) -> None:
    assert lead(verdict).text == expected


def test_a_sentence_is_divided_at_the_title_which_may_be_a_link() -> None:
    story = TopStory("site.post:1", "100% (of %(title)s)", 9, 50, None)
    sentence = words._of_story(story)
    assert sentence.before == "Half of all views went to one story: "
    assert (sentence.title, sentence.after) == ("100% (of %(title)s)", ".")
    assert sentence.subject == "site.post:1"


def test_per_cents_are_written_as_the_language_has_them() -> None:
    verdict = Verdict("known", "week", days=UsualDays(5, 1, 0), change=Change("reads", 13))
    for language, written in {"en": "13%", "de": "13\u00a0%", "pt-br": "13%", "ja": "13%"}.items():
        with override(language):
            assert written in lead(verdict).text


def test_what_is_viewed_is_a_story_and_what_it_is_in_a_category() -> None:
    """One word for one thing: not an object here, a post there, and a section in a third place."""
    other_words = re.compile(r"\b(objects?|posts?|articles?|sections?)\b", re.IGNORECASE)
    mixed = []
    for part in ("dashboard", "numbers", "digest"):
        for path in (PACKAGE / part).rglob("*"):
            keys_of = {".py": of_code, ".html": of_template, ".txt": of_template}.get(path.suffix)
            if keys_of is None or "static" in path.parts:
                continue
            for _context, text in keys_of(path.read_text(encoding="utf-8")):
                if other_words.search(PLACE.sub("", text)):
                    mixed.append((path.name, text))
    assert mixed == []
