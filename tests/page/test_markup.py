"""How a count or a dot stands in the page."""

from django.test.signals import template_rendered
from django.utils.translation import override

from readtrack.page import markup
from readtrack.page.placeholders import COUNT, DOT, EXACT, IF, Placeholder
from readtrack.reports.live import PageState
from readtrack.store.counters import Total


def test_a_count_in_words_is_one_view_or_many() -> None:
    assert markup.count(1, kind="words") == '<span class="readtrack-count" title="1">1 view</span>'
    assert ">1.2k views<" in markup.count(1234, kind="words")


def test_a_dot_is_read_aloud_in_the_readers_language() -> None:
    with override("en"):
        dot = markup.dot(is_unread=True)
    assert '<span class="readtrack-dot__text">unread</span>' in dot
    assert markup.dot(is_unread=False) == ""


def test_a_short_count_has_the_exact_number_as_its_title() -> None:
    assert markup.count(12345, kind=COUNT) == '<span class="readtrack-count" title="12,345">12k</span>'
    assert markup.count(12345, kind="exact") == "12,345"


def test_the_dots_of_a_page_are_rendered_once() -> None:
    subjects = [f"site.category:{number}" for number in range(50)]
    templates: list[str] = []

    def note(template: object, **kwargs: object) -> None:
        templates.append(str(template))

    template_rendered.connect(note)
    waiting = {subject.encode(): Placeholder(DOT, subject) for subject in subjects}
    html = markup.render(waiting, PageState({}, {subject: number for number, subject in enumerate(subjects)}))
    assert set(html.values()) == {"", markup.dot(is_unread=True)}
    assert len(templates) == 2  # the page's, and ours to compare with


def test_what_is_alike_in_a_page_is_still_told_apart() -> None:
    waiting = {
        b"a": Placeholder(EXACT, "site.post:1", 5),
        b"b": Placeholder(EXACT, "site.post:2", 5),
        b"c": Placeholder(DOT, "site.post:1"),
        b"d": Placeholder(IF, "site.post:1"),
    }
    html = markup.render(waiting, PageState({"site.post:1": Total(7)}, {}))
    assert html == {b"a": "7", b"b": "5", b"c": "", b"d": ""}
