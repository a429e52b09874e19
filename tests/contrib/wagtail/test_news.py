"""Pages that are published make the pages above them unread, and the categories that they link to."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.management import call_command
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks
from wagtail.models import Locale, Page, PageViewRestriction

from readtrack import reports, tracker
from readtrack.contrib.wagtail import news as wagtail_news
from readtrack.contrib.wagtail import visibility
from readtrack.models import PendingPublication
from readtrack.subjects import subject_of
from tests.contrib.wagtail.conftest import Publish
from tests.contrib.wagtail.site.models import (
    EventPage,
    IndexPage,
    Notice,
    PlainPage,
    StoryPage,
    Topic,
    Venue,
)
from tests.support import factories


class News:
    """Says which categories a piece of code makes unread."""

    def __init__(self, capture: DjangoCaptureOnCommitCallbacks) -> None:
        self.capture = capture

    def of(self, action: Any) -> list[str]:
        """Returns the subjects of the categories that the action makes unread."""
        PendingPublication.objects.all().delete()
        action()
        publications = PendingPublication.objects.order_by("subject")
        return [publication.subject for publication in publications]


@pytest.fixture
def news(django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks) -> News:
    return News(django_capture_on_commit_callbacks)


def published(page: Any) -> Any:
    """Returns a function that publishes the page."""
    return lambda: page.save_revision().publish()


def test_a_page_is_news_when_it_is_published_and_not_when_it_is_saved(
    draft: Publish, index: IndexPage, news: News
) -> None:
    drafts: list[Any] = []
    assert news.of(lambda: drafts.append(draft())) == []
    [story] = drafts
    assert news.of(story.save) == []
    assert news.of(story.save_revision) == []
    assert news.of(published(story)) == [subject_of(index)]
    assert news.of(published(StoryPage.objects.get())) == []


def test_a_reader_sees_a_dot_beside_the_index_until_the_index_is_read(
    publish: Publish, index: IndexPage, news: News
) -> None:
    user = factories.user()
    page = Page.objects.get(pk=index.pk).specific_deferred
    tracker.mark_read(user, [page])
    with news.capture(execute=True):
        publish()
    assert reports.unread(user, [page])
    factories.browser(user).get(index.url)
    assert not reports.unread(user, [page])


@pytest.mark.parametrize("model", [StoryPage, EventPage, PlainPage])
def test_a_page_is_news_whether_it_is_counted_or_not(
    draft: Publish, index: IndexPage, news: News, model: Any
) -> None:
    assert news.of(published(draft(model))) == [subject_of(index)]


def test_a_page_is_news_in_every_section_above_it(
    draft: Publish, index: IndexPage, news: News
) -> None:
    plain = draft(PlainPage)
    inner = plain.add_child(instance=IndexPage(title="Inner", slug="inner"))
    story = draft(parent=inner)
    assert news.of(published(story)) == [subject_of(index), subject_of(inner)]


def test_an_index_is_news_itself_and_in_the_index_above_it(
    draft: Publish, index: IndexPage, news: News
) -> None:
    inner = draft(IndexPage)
    assert news.of(published(inner)) == [subject_of(index), subject_of(inner)]


def test_a_scheduled_page_is_news_when_its_time_has_come(
    draft: Publish, index: IndexPage, news: News
) -> None:
    story = draft()
    story.go_live_at = timezone.now() + timedelta(hours=1)
    assert news.of(published(story)) == []
    assert not StoryPage.objects.get().live
    revision = story.get_latest_revision()
    revision.content["go_live_at"] = timezone.now().isoformat()
    revision.approved_go_live_at = timezone.now() - timedelta(seconds=1)
    revision.save()
    assert news.of(lambda: call_command("publish_scheduled")) == [subject_of(index)]
    assert StoryPage.objects.get().live


def test_a_page_that_its_editor_has_dated_is_news_once(
    draft: Publish, index: IndexPage, news: News
) -> None:
    page = draft()
    page.first_published_at = timezone.now() - timedelta(days=1)
    older, newer = page.save_revision(), page.save_revision()
    assert news.of(newer.publish) == [subject_of(index)]
    page.refresh_from_db()
    assert news.of(published(page)) == []
    assert news.of(older.publish) == []


def test_an_edited_page_that_is_published_by_the_schedule_is_no_news(
    publish: Publish, news: News
) -> None:
    story = publish()
    revision = story.save_revision(approved_go_live_at=timezone.now() - timedelta(seconds=1))
    assert revision.approved_go_live_at
    assert news.of(lambda: call_command("publish_scheduled")) == []


def test_an_alias_is_no_news_beside_its_source(
    draft: Publish, index: IndexPage, news: News
) -> None:
    other = index.add_sibling(instance=IndexPage(title="Other", slug="other"))
    story = draft()
    assert news.of(lambda: story.create_alias(parent=other, update_slug="alias")) == []
    assert news.of(published(story)) == [subject_of(index)]
    alias = StoryPage.objects.get(slug="alias")
    assert alias.live
    assert news.of(lambda: alias.move(index, pos="last-child")) == []


def test_a_live_copy_is_news_and_a_draft_is_none(
    publish: Publish, index: IndexPage, news: News
) -> None:
    story = publish()
    assert news.of(lambda: story.copy(update_attrs={"slug": "live"})) == [subject_of(index)]
    copy: Any = lambda: story.copy(update_attrs={"slug": "draft"}, keep_live=False)  # noqa: E731
    assert news.of(copy) == []


def test_a_page_that_comes_back_is_no_news(publish: Publish, news: News) -> None:
    story = publish()
    assert news.of(story.unpublish) == []
    assert news.of(published(StoryPage.objects.get())) == []


def test_a_site_has_a_rule_of_its_own(
    publish: Publish, index: IndexPage, news: News, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = publish()
    monkeypatch.setattr(StoryPage, "is_news", lambda self, *, created, changed: not created)
    assert news.of(published(story)) == [subject_of(index)]
    assert news.of(lambda: publish(slug="second")) == []


# Locales


def test_a_translation_is_news_in_the_tree_of_its_locale_only(
    publish: Publish, index: IndexPage, news: News
) -> None:
    german = Locale.objects.create(language_code="de")
    story = publish()
    assert news.of(lambda: story.copy_for_translation(german, copy_parents=True)) == []
    translation = StoryPage.objects.get(locale=german)
    german_index = translation.get_parent().specific
    assert german_index != index
    assert news.of(published(translation)) == [subject_of(german_index)]


def test_a_translation_is_no_news_in_a_category_of_another_locale(
    draft: Publish, index: IndexPage, news: News
) -> None:
    german = Locale.objects.create(language_code="de")
    topic = Topic.objects.create(name="Bread", locale=index.locale)
    german_topic = topic.copy_for_translation(german)
    german_topic.save()
    story = draft(topics=[topic, german_topic])
    assert news.of(published(story)) == [subject_of(index), subject_of(topic)]
    translation = story.copy_for_translation(german, copy_parents=True)
    translation.topics = [topic, german_topic]
    assert subject_of(german_topic) in news.of(published(translation))
    assert subject_of(topic) not in news.of(published(translation))


def test_only_the_first_translation_is_news_in_a_category_without_a_locale(
    draft: Publish, index: IndexPage, news: News
) -> None:
    german = Locale.objects.create(language_code="de")
    venue = Venue.objects.create(name="Hall")
    event = draft(EventPage, venue=venue)
    translation = event.copy_for_translation(german, copy_parents=True)
    assert subject_of(venue) in news.of(published(event))
    assert subject_of(venue) not in news.of(published(translation))


def test_a_draft_with_categories_is_no_news_in_them(draft: Publish, news: News) -> None:
    topic = Topic.objects.create(name="Bread", locale=Locale.objects.get())
    venue = Venue.objects.create(name="Hall")
    assert news.of(lambda: draft(topics=[topic])) == []
    assert news.of(lambda: draft(EventPage, slug="event", venue=venue)) == []


# Private pages


def restrict(page: Any) -> None:
    PageViewRestriction.objects.create(page=page, restriction_type="login")


def test_a_private_page_is_no_news_for_those_who_may_not_see_it(
    draft: Publish, index: IndexPage, news: News
) -> None:
    topic = Topic.objects.create(name="Bread", locale=index.locale)
    story = draft(topics=[topic])
    restrict(story)
    assert news.of(published(story)) == []


def test_a_private_page_is_news_in_a_section_that_is_as_private(
    draft: Publish, index: IndexPage, news: News
) -> None:
    inner = draft(IndexPage)
    restrict(inner)
    assert news.of(published(draft(parent=inner))) == [subject_of(inner)]


def test_the_public_is_told_of_public_pages_only(
    publish: Publish, draft: Publish, index: IndexPage
) -> None:
    public = publish(IndexPage, slug="public")
    private = publish(IndexPage, slug="private")
    below = publish(IndexPage, slug="below", parent=private)
    hidden = draft(IndexPage, slug="hidden")
    restrict(private)
    pages = [public, private, below, hidden]
    assert [visibility.is_public(page) for page in pages] == [True, False, False, False]
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    rows = IndexPage.objects.filter(pk__in=[page.pk for page in pages])
    assert list(visibility.visible(request, rows)) == [public]
    request.user = factories.user()
    assert set(visibility.visible(request, rows)) == {public, private, below}
    venues = Venue.objects.all()
    assert visibility.visible(request, venues) is venues


def test_json_says_nothing_about_a_page_that_the_reader_may_not_see(
    publish: Publish, index: IndexPage
) -> None:
    private = publish(IndexPage)
    PageViewRestriction.objects.create(page=private, restriction_type="groups")
    names = [subject_of(index), subject_of(private)]
    answer = factories.browser(factories.user()).get(
        reverse("readtrack:unread"), {"category": names}
    )
    assert list(answer.json()["categories"]) == [subject_of(index)]


# Moved, hidden and deleted pages


@pytest.fixture
def counted_news(settings: Any) -> None:
    """Lets dots know how much is new, so that news can be taken back."""
    settings.READTRACK = {
        **settings.READTRACK,
        "DOTS": {**settings.READTRACK.get("DOTS", {}), "form": "sequence"},
    }


@pytest.mark.usefixtures("counted_news")
class TestTakenBack:
    """News that readers have not seen goes, too."""

    @pytest.fixture
    def reader(self, index: IndexPage) -> User:
        user = factories.user()
        tracker.mark_read(user, [index])
        return user

    @pytest.fixture
    def story(self, publish: Publish, news: News, reader: User, index: IndexPage) -> Any:
        with news.capture(execute=True):
            story = publish()
        assert reports.unread_counts(reader, [index]) == {index: 1}
        return story

    def test_when_a_page_is_hidden(
        self, story: Any, news: News, reader: User, index: IndexPage
    ) -> None:
        with news.capture(execute=True):
            story.unpublish()
        assert reports.unread_counts(reader, [index]) == {index: 0}

    def test_when_a_page_expires(
        self, story: Any, news: News, reader: User, index: IndexPage
    ) -> None:
        StoryPage.objects.update(expire_at=timezone.now() - timedelta(seconds=1))
        with news.capture(execute=True):
            call_command("publish_scheduled")
        assert reports.unread_counts(reader, [index]) == {index: 0}

    def test_when_a_page_is_deleted(
        self, story: Any, news: News, reader: User, index: IndexPage
    ) -> None:
        with news.capture(execute=True):
            Page.objects.get(pk=story.pk).delete()
        assert reports.unread_counts(reader, [index]) == {index: 0}

    def test_when_a_page_is_moved_it_is_news_in_its_new_place(
        self, story: Any, news: News, reader: User, index: IndexPage
    ) -> None:
        other = index.add_sibling(instance=IndexPage(title="Other", slug="other"))
        tracker.mark_read(reader, [other])
        with news.capture(execute=True):
            Page.objects.get(pk=story.pk).move(other, pos="last-child")
        assert reports.unread_counts(reader, [index, other]) == {index: 0, other: 1}


@pytest.mark.usefixtures("counted_news")
class TestSectionMoved:
    """The pages of a section that is moved are news where the section comes to."""

    @pytest.fixture
    def other(self, index: IndexPage) -> IndexPage:
        other: IndexPage = index.add_sibling(instance=IndexPage(title="Other", slug="other"))
        return other

    @pytest.fixture
    def reader(self, index: IndexPage, other: IndexPage) -> User:
        user = factories.user()
        tracker.mark_read(user, [index, other])
        return user

    @pytest.fixture
    def section(self, publish: Publish, news: News, reader: User) -> Any:
        """Returns a section with three pages, which the reader has not seen in the index."""
        with news.capture(execute=True):
            section = publish(IndexPage, slug="section")
            for slug in ("first", "second", "third"):
                publish(slug=slug, parent=section)
        return section

    def move(self, page: Any, target: Any, news: News) -> None:
        with news.capture(execute=True):
            Page.objects.get(pk=page.pk).move(Page.objects.get(pk=target.pk), pos="last-child")

    def test_all_its_pages_are_news_in_the_new_place_alone(
        self, section: Any, news: News, reader: User, index: IndexPage, other: IndexPage
    ) -> None:
        assert reports.unread_counts(reader, [index, other]) == {index: 4, other: 0}
        self.move(section, other, news)
        assert reports.unread_counts(reader, [index, other]) == {index: 0, other: 4}
        self.move(section, index, news)
        assert reports.unread_counts(reader, [index, other]) == {index: 4, other: 0}

    def test_pages_are_taken_a_portion_at_a_time(
        self,
        section: Any,
        news: News,
        reader: User,
        index: IndexPage,
        other: IndexPage,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(wagtail_news, "PAGES_AT_ONCE", 3)
        self.move(section, other, news)
        assert reports.unread_counts(reader, [index, other]) == {index: 0, other: 4}

    def test_its_own_dot_stays_as_it_is(
        self, section: Any, news: News, reader: User, other: IndexPage
    ) -> None:
        tracker.mark_read(reader, [section])
        self.move(section, other, news)
        assert not reports.unread(reader, [section])

    def test_a_read_page_with_a_dot_of_its_own_stays_read(
        self, publish: Publish, section: Any, news: News, reader: User, other: IndexPage
    ) -> None:
        with news.capture(execute=True):
            inner = publish(IndexPage, slug="inner", parent=section)
        tracker.mark_read(reader, [inner])
        self.move(inner, other, news)
        assert not reports.unread(reader, [inner])
        assert reports.unread_counts(reader, [other]) == {other: 1}

    def test_within_its_parent_changes_nothing(
        self, publish: Publish, section: Any, news: News, reader: User, index: IndexPage
    ) -> None:
        with news.capture(execute=True):
            publish(slug="last")
        self.move(section, index, news)
        assert [page.slug for page in index.get_children()] == ["last", "section"]
        assert reports.unread_counts(reader, [index]) == {index: 5}
        tracker.mark_read(reader, [index])
        self.move(section, index, news)
        assert not reports.unread(reader, [index])

    def test_below_a_section_that_it_stays_in_that_one_is_not_made_unread(
        self, publish: Publish, section: Any, news: News, reader: User, index: IndexPage
    ) -> None:
        inner = publish(IndexPage, slug="inner")
        tracker.mark_read(reader, [index, inner])
        self.move(section, inner, news)
        assert reports.unread_counts(reader, [index, inner]) == {index: 0, inner: 4}

    def test_drafts_aliases_and_private_pages_in_it_are_no_news(
        self,
        draft: Publish,
        publish: Publish,
        section: Any,
        news: News,
        reader: User,
        other: IndexPage,
    ) -> None:
        draft(slug="draft", parent=section)
        publish(slug="source").create_alias(parent=section, update_slug="alias")
        private = publish(PlainPage, slug="private", parent=section)
        publish(slug="below", parent=private)
        restrict(private)
        self.move(section, other, news)
        assert reports.unread_counts(reader, [other]) == {other: 4}

    def test_into_a_private_section_it_is_news_there_alone(
        self, publish: Publish, section: Any, news: News, reader: User, index: IndexPage
    ) -> None:
        members = publish(IndexPage, slug="members")
        restrict(members)
        tracker.mark_read(reader, [index, members])
        self.move(section, members, news)
        assert reports.unread_counts(reader, [index, members]) == {index: 0, members: 4}

    def test_more_pages_take_no_more_queries(
        self, publish: Publish, section: Any, news: News, index: IndexPage, other: IndexPage
    ) -> None:
        with CaptureQueriesContext(connection) as few:
            self.move(section, other, news)
        for number in range(20):
            publish(slug=f"more-{number}", parent=Page.objects.get(pk=section.pk))
        with CaptureQueriesContext(connection) as many:
            self.move(section, index, news)
        assert len(many) <= len(few)


def test_a_page_that_is_moved_within_its_section_is_no_news(
    publish: Publish, index: IndexPage, news: News
) -> None:
    first = publish(slug="first")
    second = publish(slug="second")
    assert news.of(lambda: second.move(first, pos="left")) == []


def test_a_draft_that_is_moved_is_no_news(draft: Publish, index: IndexPage, news: News) -> None:
    other = index.add_sibling(instance=IndexPage(title="Other", slug="other"))
    assert news.of(lambda: draft().move(other, pos="last-child")) == []


def test_a_snippet_that_is_saved_in_its_form_is_news_for_its_new_topics(
    chief: User, news: News, index: IndexPage
) -> None:
    locale = Locale.objects.get()
    old, new = (Topic.objects.create(name=name, locale=locale) for name in ("Old", "New"))
    editor = factories.browser(chief)

    def save(url: str, *topics: Topic) -> None:
        answer = editor.post(url, {"title": "A", "topics": [topic.pk for topic in topics]})
        assert answer.status_code == 302

    url_names = Notice.snippet_viewset.get_url_name
    assert news.of(lambda: save(reverse(url_names("add")), old)) == [subject_of(old)]
    notice = Notice.objects.get()
    edit = reverse(url_names("edit"), args=[notice.pk])
    assert news.of(lambda: save(edit, old, new)) == [subject_of(new)]
    assert news.of(lambda: save(edit, old)) == []
