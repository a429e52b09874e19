"""The number of words of a text, and the time that it takes."""

import pytest

from readtrack.script import reading
from readtrack.script.reading import least_seconds, words

ENGLISH = "It’s a truth universally acknowledged (well-known, 3.14 of them) – or so they say; don't ask <b>why</b>!"
CHINESE = "我喜欢写代码。人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"
JAPANESE = "私はコードを書くのが好きです。すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
THAI = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ"
HINDI = "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।"

# As Chromium's Intl.Segmenter (ICU) counts them.
BY_ICU = {
    ENGLISH: 17,
    CHINESE: 30,
    JAPANESE: 28,
    THAI: 15,
    HINDI: 15,
    "Site Kit by Google の新機能": 7,
    "": 0,
}


@pytest.mark.parametrize(
    "text", BY_ICU, ids=["English", "Chinese", "Japanese", "Thai", "Hindi", "mixed", "none"]
)
def test_words_are_counted_as_each_script_writes_them(text: str) -> None:
    assert words(text) == pytest.approx(BY_ICU[text], rel=0.1)


def test_only_what_is_shown_is_counted() -> None:
    shown = "<p>one&nbsp;<b>two</b>&amp; three<br>four</p><script>if (1 < 2) go()</script><STYLE>p {}</STYLE> five"
    assert words(shown) == 5
    assert words("<p>&copy; – …</p>") == 0


def test_the_words_of_a_text_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "TEXTS", 2)
    monkeypatch.setattr(reading, "_counts", {})
    for text, known in (("a", 1), ("a b", 2), ("a", 2), ("a b c", 1)):
        assert (words(text), len(reading._counts)) == (len(text.split()), known)


@pytest.mark.parametrize("part", ["<", "<script ", "<!--", "&", "-'", "<a "])
def test_what_a_visitor_typed_takes_no_more_time_than_other_text(part: str) -> None:
    assert words(part * 50_000) <= 50_000  # in milliseconds, and not in minutes


@pytest.mark.parametrize(("count", "seconds"), [(0, 5), (20, 5), (238, 51), (476, 102), (600, 128)])
def test_the_time_is_that_of_site_kit(count: int, seconds: int) -> None:
    assert least_seconds(count) == seconds
