"""Numbers in Wagtail's admin and in its user bar."""

import csv
import io
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse
from openpyxl import load_workbook
from pytest_django import DjangoAssertNumQueries, Settings
from wagtail.models import GroupPagePermission, Locale, Page, PageViewRestriction

from readtrack import buckets
from readtrack.access import numbers_url
from readtrack.contrib.wagtail import report
from readtrack.contrib.wagtail.panel import DAYS, ReadTrackPanel, line
from readtrack.models import SubjectCount
from readtrack.numbers import local_time
from readtrack.numbers.models import History
from readtrack.numbers.tables import NOT_KNOWN
from readtrack.subjects import label_of
from tests.contrib.wagtail.conftest import Publish, editor_of, viewed
from tests.contrib.wagtail.site.models import (
    EventPage,
    FormPage,
    IndexPage,
    LongStoryPage,
    PlainPage,
    StoryPage,
)
from tests.support import factories, growth

REPORT = "/admin/reports/page-views/"


def rows(response: Any) -> list[tuple[str, int, int, int]]:
    """Returns the title and the numbers of each row of the report."""
    return [
        (page.title, page.live_views, page.live_visitors, page.last_views)
        for page in response.context["object_list"]
    ]


def headings(response: Any) -> list[str]:
    """Returns the headings of the report's columns."""
    return [str(column.label) for column in response.context["table"].columns.values()]


def text_of(response: Any) -> str:
    return " ".join(response.content.decode().split())


# The report


def test_the_report_lists_counted_pages_with_the_most_viewed_first(
    publish: Publish, editor: User
) -> None:
    publish(PlainPage, title="Plain")
    viewed(publish(title="Story", slug="story"), 2)
    viewed(publish(EventPage, title="Event", slug="event"), 3)
    publish(LongStoryPage, title="Long story", slug="long")
    response = factories.browser(editor).get(REPORT)
    assert rows(response) == [
        ("Event", 3, 3, 3),
        ("Story", 2, 2, 2),
        ("Long story", 0, 0, 0),
    ]
    # Without languages, because there is one.
    assert headings(response) == ["Title", "Type", "Views", "Visitors", "Views in 7 days", ""]


def test_the_report_says_what_the_dashboard_says(publish: Publish, chief: User) -> None:
    viewed(publish(title="The <first>", slug="first"), 30)  # of fewer no story is named
    viewed(publish(EventPage, slug="event"), 1)
    browser = factories.browser(chief)
    response = browser.get(REPORT)
    overview = response.context["overview"]
    dashboard = browser.get(reverse("admin:readtrack_dashboard_changelist")).context
    said = dashboard["lead"]
    assert overview.lead.verdict == said.verdict
    sentences = [sentence.text for sentence, _link in said.sentences]
    assert [sentence.text for sentence in overview.lead.sentences] == sentences
    assert any("The <first>" in sentence for sentence in sentences)
    assert "There were 31 views" in text_of(response)
    assert "<bdi>The &lt;first&gt;</bdi>" in text_of(response)
    figures = [(figure.label, figure.value) for figure in dashboard["figures"]]
    assert [*overview.figures] == [pair for pair in figures if pair[1] != NOT_KNOWN]
    assert overview.figures[0] == ("Views", "31")


def test_the_report_names_no_page_that_its_reader_may_not_explore(
    publish: Publish, index: IndexPage
) -> None:
    other = index.get_parent().add_child(instance=IndexPage(title="Board", slug="board"))
    viewed(publish(title="Salaries", slug="salaries", parent=other), 3)
    response = factories.browser(editor_of(index)).get(REPORT)
    assert "There were 3 views" in text_of(response)
    assert "Salaries" not in text_of(response)
    assert "Salaries" in text_of(factories.browser(editor_of(other)).get(REPORT))


def test_the_report_says_why_a_page_grew(
    publish: Publish, index: IndexPage, chief: User, settings: Settings
) -> None:
    settings.READTRACK = {**settings.READTRACK, "NUMBERS": {"dimensions": ["referrer"]}}
    other = index.get_parent().add_child(instance=IndexPage(title="Board", slug="board"))
    long_ago = buckets.now() - 60 * buckets.DAY
    page = publish(title="The <spring>", slug="spring", parent=other)
    Page.objects.filter(pk=page.pk).update(first_published_at=long_ago)
    beside = publish(slug="beside")
    day = local_time.today() - 100 * buckets.DAY
    first_hour = local_time.first_hour_of(day)
    label = label_of(StoryPage)
    History.objects.create(subject=label, hour=first_hour, views=1, visitors=0)
    growth.grow(page, beside)
    viewed(page)
    text = text_of(factories.browser(chief).get(REPORT))
    assert "Grew most (in the 6 days that are over):" in text
    assert '<bdi>The &lt;spring&gt;</bdi>: <bdi dir="ltr">+720</bdi>' in text
    assert "Of 720 views more than before, 700 came from one source: news.example." in text
    # Who may not explore the page does not learn that it grew.
    assert "spring" not in text_of(factories.browser(editor_of(index)).get(REPORT))


def test_the_report_has_views_that_are_not_flushed(publish: Publish, editor: User) -> None:
    story = publish()
    factories.browser().get(story.url)
    assert rows(factories.browser(editor).get(REPORT)) == [("A story", 1, 1, 1)]


def test_the_report_takes_the_same_queries_for_one_page_and_for_fifty(
    draft: Publish,
    publish: Publish,
    editor: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    browser = factories.browser(editor)
    viewed(publish(slug="first"))
    publish(EventPage, slug="event")
    browser.get(REPORT)  # fills caches of content types and permissions
    with django_assert_max_num_queries(100) as few:
        browser.get(REPORT)
    for number in range(60):
        draft(slug=f"story-{number}")
    StoryPage.objects.update(live=True)  # to publish each of them takes as long again
    with django_assert_max_num_queries(len(few)):
        response = browser.get(REPORT)
    assert len(rows(response)) == 50
    assert len(few) <= 45, [query["sql"][:100] for query in few]


def test_the_report_can_be_sorted(publish: Publish, editor: User) -> None:
    publish(title="B", slug="b")
    viewed(publish(title="A", slug="a"))
    browser = factories.browser(editor)
    titles = {
        ordering: [row[0] for row in rows(browser.get(REPORT, {"ordering": ordering}))]
        for ordering in ("stored_views", "-title", "pk", "stored_visitors")
    }
    assert titles == {
        "stored_views": ["B", "A"],
        "-title": ["B", "A"],
        "pk": ["A", "B"],
        "stored_visitors": ["B", "A"],
    }


def test_the_report_is_filtered_by_type_section_language_and_title(
    publish: Publish, editor: User, index: IndexPage
) -> None:
    german = Locale.objects.create(language_code="de")
    other = index.add_sibling(instance=IndexPage(title="Other", slug="other"))
    story = publish(title="Story", slug="story")
    publish(EventPage, title="Event", slug="event", parent=other)
    translation = story.copy_for_translation(german, copy_parents=True)
    translation.title = "Geschichte"
    translation.save_revision().publish()
    browser = factories.browser(editor)

    assert "Language" in headings(browser.get(REPORT))

    def titles(**filters: Any) -> list[str]:
        return sorted(row[0] for row in rows(browser.get(REPORT, filters)))

    assert titles() == ["Event", "Geschichte", "Story"]
    assert titles(content_type=EventPage(title="x").content_type_id) == ["Event"]
    assert titles(section=other.pk) == ["Event"]
    assert titles(section=index.pk) == ["Story"]
    assert titles(locale=german.pk) == ["Geschichte"]
    assert titles(q="stor") == ["Story"]
    assert titles(section="nonsense", ordering="nonsense") == ["Event", "Geschichte", "Story"]


def test_the_results_of_the_report_come_alone_for_its_filters(
    publish: Publish, editor: User
) -> None:
    publish()
    response = factories.browser(editor).get(f"{REPORT}results/")
    assert rows(response) == [("A story", 0, 0, 0)]
    assert "<html" not in response.content.decode()


def test_the_report_is_exported_by_wagtail(
    publish: Publish, editor: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report.scripts, "SLICE", 2)
    story = publish(title="=Story", slug="story")
    viewed(story, 2)
    for number in range(2):
        publish(EventPage, title=f"Event {number}", slug=f"event-{number}")
    browser = factories.browser(editor)
    response = browser.get(REPORT, {"export": "csv"})
    lines = list(csv.reader(io.StringIO(b"".join(response.streaming_content).decode())))
    assert lines[0][:3] == ["ID", "Title", "URL"]
    assert lines[0][-3:] == ["Views", "Visitors", "Views in 7 days"]
    assert [[cell[1], *cell[-3:]] for cell in lines[1:]] == [
        ["'=Story", "2", "2", "2"],
        ["Event 0", "0", "0", "0"],
        ["Event 1", "0", "0", "0"],
    ]
    assert lines[1][2:5] == ["http://localhost/news/story/", "Story page", "English"]
    response = browser.get(REPORT, {"export": "xlsx", "content_type": story.content_type_id})
    sheet = load_workbook(io.BytesIO(b"".join(response.streaming_content))).active
    cells = [[cell.value for cell in row] for row in sheet.rows]
    assert len(cells) == 2
    assert [cells[1][1], *cells[1][-3:]] == ["'=Story", 2, 2, 2]
    assert sheet["B2"].data_type == "s"  # and no formula


@pytest.mark.parametrize("codenames", [[], ["access_admin"], ["view_numbers"]])
def test_nobody_else_sees_the_report(index: IndexPage, codenames: list[str]) -> None:
    user = factories.user()
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    browser = factories.browser(user)
    for url in (REPORT, f"{REPORT}results/", f"{REPORT}?export=csv"):
        assert browser.get(url).status_code == 302  # to the home page, or to sign in
    assert "page-views" not in browser.get("/admin/").content.decode()


def test_the_report_has_only_pages_that_its_reader_may_explore(
    publish: Publish, draft: Publish, index: IndexPage
) -> None:
    other = index.get_parent().add_child(instance=IndexPage(title="Board", slug="board"))
    publish(title="News of all", slug="news")
    draft(title="Draft of ours", slug="ours")
    publish(title="Theirs", slug="theirs", parent=other)
    draft(title="Secret merger", slug="merger", parent=other)
    private = publish(title="Salaries", slug="salaries", parent=other)
    PageViewRestriction.objects.create(page=private, restriction_type="login")
    readers = {
        editor_of(index): {"News of all", "Draft of ours"},
        editor_of(other): {"Theirs", "Secret merger", "Salaries"},
        editor_of(index, other): {
            "News of all",
            "Draft of ours",
            "Theirs",
            "Secret merger",
            "Salaries",
        },
        editor_of(private): {"Salaries"},
        editor_of(): set(),
    }
    for reader, titles in readers.items():
        browser = factories.browser(reader)
        response = browser.get(REPORT)
        assert {row[0] for row in rows(response)} == titles
        file = b"".join(browser.get(REPORT, {"export": "csv"}).streaming_content).decode()
        for title in ("Secret merger", "Salaries", "Theirs", "Draft of ours"):
            assert (title in file) is (title in titles)
        # Nor among the sections of the filter, nor by a section or by a search.
        assert ("Board" in text_of(response)) is bool(titles & {"Theirs", "Salaries"})
        for question in ({"section": other.pk}, {"q": "merger"}):
            found = browser.get(REPORT, question)
            assert {row[0] for row in rows(found)} <= titles


def test_the_menu_has_the_report(editor: User, index: IndexPage) -> None:
    assert REPORT in factories.browser(editor).get("/admin/").content.decode()


def test_the_rule_of_the_site_decides_in_wagtail_as_well(
    index: IndexPage, editor: User, chief: User, settings: Settings
) -> None:
    rule = "tests.contrib.wagtail.test_admin.only_chief"
    settings.READTRACK = {**settings.READTRACK, "VIEW_NUMBERS": rule}
    assert factories.browser(editor).get(REPORT).status_code == 302
    assert factories.browser(chief).get(REPORT).status_code == 200


def only_chief(user: Any, obj: Any) -> bool:
    return bool(user.username == "chief")


def test_a_group_is_given_the_permission_in_wagtails_settings(
    chief: User, index: IndexPage
) -> None:
    group = Group.objects.create(name="Editors")
    response = factories.browser(chief).get(reverse("wagtailusers_groups:edit", args=[group.pk]))
    permission = Permission.objects.get(codename="view_numbers")
    assert f'value="{permission.pk}"' in response.content.decode()


# The panel


def form_of(page: Any, user: User) -> str:
    """Returns the page's form in Wagtail's admin."""
    response = factories.browser(user).get(reverse("wagtailadmin_pages:edit", args=[page.pk]))
    assert response.status_code == 200
    return text_of(response)


@pytest.fixture
def author(index: IndexPage) -> User:
    """Returns a user who may edit pages and has no permission to see numbers."""
    user = factories.user()
    group = Group.objects.create(name="Authors")
    group.permissions.set(Permission.objects.filter(codename="access_admin"))
    permission = Permission.objects.get(
        codename="change_page", content_type__app_label="wagtailcore"
    )
    GroupPagePermission.objects.create(group=group, page=index, permission=permission)
    user.groups.add(group)
    return user


@pytest.mark.parametrize("model", [StoryPage, EventPage])
def test_the_form_of_a_page_has_its_numbers(publish: Publish, chief: User, model: Any) -> None:
    page = publish(model)
    viewed(page, 3)
    text = form_of(page, chief)
    assert '<dt>Views</dt><dd class="w-h2 w-m-0">3</dd>' in text
    assert '<dt>Visitors</dt><dd class="w-h2 w-m-0">3</dd>' in text
    assert f"Views of the last {DAYS} days: 3" in text
    assert numbers_url(page) in text
    assert "<polyline" in text


def test_the_panel_is_not_saved_with_the_page(publish: Publish, chief: User) -> None:
    page = publish()
    viewed(page, 3)
    form = {"title": "Changed", "slug": page.slug, "body": "", "action-publish": "1"}
    form |= {"comments-TOTAL_FORMS": "0", "comments-INITIAL_FORMS": "0"}
    url = reverse("wagtailadmin_pages:edit", args=[page.pk])
    assert factories.browser(chief).post(url, form).status_code == 302
    page = StoryPage.objects.get()
    assert (page.title, page.view_count) == ("Changed", 3)


def test_an_author_sees_the_numbers_of_the_own_page_only(publish: Publish, author: User) -> None:
    own = publish(owner=author)
    other = publish(slug="other")
    text = form_of(own, author)
    assert "<polyline" in text
    assert "All numbers" not in text  # which are in Django's admin
    assert "<polyline" not in form_of(other, author)


def test_a_form_of_ones_own_and_a_page_without_counts_have_no_panel(
    publish: Publish, chief: User
) -> None:
    assert "<polyline" not in form_of(publish(FormPage), chief)
    assert "<polyline" not in form_of(publish(PlainPage, slug="plain"), chief)


def test_the_form_of_a_new_page_has_no_numbers(index: IndexPage, chief: User) -> None:
    url = reverse("wagtailadmin_pages:add", args=["wagtail_site", "storypage", index.pk])
    response = factories.browser(chief).get(url)
    assert response.status_code == 200
    assert "<polyline" not in response.content.decode()


def test_each_counted_model_has_one_panel() -> None:
    for model in (StoryPage, LongStoryPage, EventPage):
        panels = [panel for panel in model.promote_panels if isinstance(panel, ReadTrackPanel)]
        assert len(panels) == 1
    for other in (IndexPage, PlainPage, Page):
        assert not any(isinstance(panel, ReadTrackPanel) for panel in other.promote_panels)


def test_the_line_of_days_fills_its_picture() -> None:
    assert line([0, 5, 10]) == "0.0,39.0 150.0,20.0 300.0,1.0"
    assert line([0, 0]) == "0.0,39.0 300.0,39.0"
    assert line([]) == ""


# The user bar


@pytest.mark.parametrize("model", [StoryPage, EventPage])
def test_the_user_bar_has_the_views_of_the_page(
    publish: Publish, chief: User, editor: User, model: Any
) -> None:
    page = publish(model)
    text = text_of(factories.browser(chief).get(page.url))
    assert 'Views: <span class="readtrack-count" title="1">1</span>' in text
    assert f'href="http://testserver{numbers_url(page)}"' in text
    text = text_of(factories.browser(editor).get(page.url))
    assert f'href="http://testserver{REPORT}"' in text


def test_an_author_is_led_to_a_page_that_an_author_may_open(publish: Publish, author: User) -> None:
    page = publish(owner=author)
    browser = factories.browser(author)
    form = reverse("wagtailadmin_pages:edit", args=[page.pk])
    text = text_of(browser.get(page.url))
    assert f'href="http://testserver{form}"' in text
    assert REPORT not in text
    assert browser.get(form).status_code == 200


def test_nobody_else_has_the_item_of_the_user_bar(publish: Publish, author: User) -> None:
    page = publish()
    for browser in (factories.browser(), factories.browser(author)):
        text = browser.get(page.url).content.decode()
        assert "Views:" not in text
    assert "<wagtail-userbar" in text


def test_the_user_bar_of_a_page_without_counts_has_no_views(index: IndexPage, chief: User) -> None:
    text = factories.browser(chief).get(index.url).content.decode()
    assert "<wagtail-userbar" in text
    assert "Views:" not in text


def test_the_user_bar_of_a_preview_does_not_fail(publish: Publish, chief: User) -> None:
    url = reverse("wagtailadmin_pages:view_draft", args=[publish().pk])
    assert factories.browser(chief).get(url).status_code == 200
    assert not SubjectCount.objects.exists()
