"""Views of pages that Wagtail serves."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import RequestFactory
from django.urls import reverse
from wagtail.models import Locale, Page, PageViewRestriction
from wagtail.views import serve

from readtrack import reports
from readtrack.flush.run import flush
from readtrack.models import SubjectCount
from readtrack.subjects import subject_of
from tests.contrib.wagtail.conftest import Publish, viewed, visitor
from tests.contrib.wagtail.site.models import (
    EventPage,
    IndexPage,
    LongStoryPage,
    PlainPage,
    StoryPage,
)
from tests.support import factories


def stored(page: Any) -> int:
    """Returns the views that SQL stores of a story."""
    return StoryPage.objects.values_list("view_count", flat=True).get(pk=page.pk)


@pytest.mark.parametrize("model", [StoryPage, LongStoryPage, EventPage])
def test_a_page_that_is_served_counts_a_view(publish: Publish, model: Any) -> None:
    page = publish(model)
    viewed(page, 2)
    assert reports.views([page]) == {page: 2}


def test_the_counts_of_a_page_are_in_the_table_of_its_model(publish: Publish) -> None:
    story = publish(LongStoryPage)
    event = publish(EventPage)
    viewed(story, 2)
    viewed(event)
    assert stored(story) == 2
    assert SubjectCount.objects.get().pk == f"wagtail_site.eventpage:{event.pk}"


def test_a_page_shows_the_view_that_it_counts(publish: Publish) -> None:
    story = publish()
    for count in (1, 2):
        content = visitor().get(story.url).content.decode()
        assert f'title="{count}">{count}</span> views' in content


def test_a_page_without_counts_is_served_as_ever(publish: Publish) -> None:
    response = factories.browser().get(publish(PlainPage).url)
    assert response.status_code == 200
    assert "X-Readtrack" not in response


def test_a_page_of_a_list_counts_as_the_page_of_its_own_model(
    publish: Publish, index: IndexPage
) -> None:
    story = publish(LongStoryPage)
    viewed(story)
    page = Page.objects.get(pk=story.pk)
    assert subject_of(page.specific) == subject_of(page.specific_deferred) == subject_of(story)
    assert (
        'A story: <span class="readtrack-count" title="1">'
        in factories.browser().get(index.url).content.decode()
    )


def test_a_page_that_is_not_of_its_own_model_says_what_to_pass(publish: Publish) -> None:
    page = Page.objects.get(pk=publish().pk)
    with pytest.raises(
        TypeError, match=r"only its children have \(.*StoryPage.*\); pass the child"
    ):
        reports.views([page])


def test_a_feed_of_a_page_counts_nothing_and_another_route_counts(
    index: IndexPage, editor: User
) -> None:
    browser = factories.browser(editor)
    subject = subject_of(index)
    response = browser.get(f"{index.url}feed/", headers={"X-Explain": "1"})
    assert response.content == b"<rss/>"
    assert not response.wsgi_request.readtrack.reads
    response = browser.get(f"{index.url}archive/")
    assert list(response.wsgi_request.readtrack.reads) == [subject]


@pytest.mark.parametrize("restriction_type", ["password", "login", "groups"])
def test_the_form_in_place_of_a_private_page_counts_nothing(
    publish: Publish, restriction_type: str
) -> None:
    story = publish()
    PageViewRestriction.objects.create(
        page=story, restriction_type=restriction_type, password="open"
    )
    response = factories.browser().get(story.url)
    assert not response.wsgi_request.readtrack.views
    flush()
    assert stored(story) == 0


def test_a_private_page_counts_for_those_who_get_in(publish: Publish) -> None:
    story = publish()
    restriction = PageViewRestriction.objects.create(
        page=story, restriction_type="password", password="open"
    )
    browser = factories.browser()
    url = reverse("wagtailcore_authenticate_with_password", args=[restriction.pk, story.pk])
    browser.post(url, {"password": "open", "return_url": story.url})
    assert browser.get(story.url).status_code == 200
    flush()
    assert stored(story) == 1


def test_a_preview_counts_nothing(publish: Publish, chief: User) -> None:
    story = publish()
    browser = factories.browser(chief)
    story.title = "Another title"
    revision = story.save_revision()
    preview = reverse("wagtailadmin_pages:view_draft", args=[story.pk])
    assert "Another title" in browser.get(preview).content.decode()
    old = reverse("wagtailadmin_pages:revisions_view", args=[story.pk, revision.pk])
    assert "Another title" in browser.get(old).content.decode()
    edit = reverse("wagtailadmin_pages:edit", args=[story.pk])
    assert browser.get(edit).status_code == 200
    flush()
    assert stored(story) == 0


def test_a_preview_of_a_new_page_counts_nothing(index: IndexPage, chief: User) -> None:
    browser = factories.browser(chief)
    url = reverse("wagtailadmin_pages:preview_on_add", args=["wagtail_site", "storypage", index.pk])
    form = {"title": "New", "slug": "new", "body": "Text", "comments-TOTAL_FORMS": 0}
    form |= {"comments-INITIAL_FORMS": 0}
    assert json.loads(browser.post(url, form).content)["is_valid"]
    response = browser.get(f"{url}?mode=")
    assert "<h1>New</h1>" in response.content.decode()
    flush()
    assert not StoryPage.objects.filter(view_count__gt=0).exists()


def test_a_page_is_served_without_the_middleware(publish: Publish) -> None:
    story = publish()
    request = RequestFactory().get(story.url)
    request.user = factories.user()
    assert serve(request, "news/a-story/").status_code == 200


def test_no_count_falls_when_a_draft_is_published(publish: Publish) -> None:
    story = publish()
    viewed(story)
    story = StoryPage.objects.get()
    story.title = "Changed"
    revision = story.save_revision()  # which has the count of now
    viewed(story, 2)
    revision.publish()
    story = StoryPage.objects.get()
    assert story.title == "Changed"
    assert story.view_count == 3
    story.unpublish()
    assert stored(story) == 3


def test_no_count_falls_when_an_old_revision_is_published_by_the_schedule(
    publish: Publish,
) -> None:
    story = publish()
    viewed(story)
    story = StoryPage.objects.get()
    revision = story.save_revision()
    viewed(story)
    revision.approved_go_live_at = story.first_published_at
    revision.save()
    call_command("publish_scheduled")
    assert stored(story) == 2


def views_of_new_page(page: Any) -> tuple[int, int]:
    """Returns what SQL stores of a page, and what its newest revision would bring back."""
    newest = page.get_latest_revision_as_object()
    return stored(page), newest.view_count


@pytest.mark.parametrize("is_live", [True, False])
def test_a_copy_begins_at_0(publish: Publish, *, is_live: bool) -> None:
    story = publish()
    viewed(story)
    StoryPage.objects.get().save_revision()
    story = StoryPage.objects.get().get_latest_revision_as_object()
    assert story.view_count == 1
    copy = story.copy(update_attrs={"slug": "copy"}, keep_live=is_live)
    assert views_of_new_page(copy) == (0, 0)
    assert reports.views([copy]) == {copy: 0}
    assert stored(story) == 1


def test_a_translation_begins_at_0(publish: Publish, index: IndexPage) -> None:
    german = Locale.objects.create(language_code="de")
    story = publish()
    viewed(story)
    translation = StoryPage.objects.get().copy_for_translation(german, copy_parents=True)
    assert views_of_new_page(translation) == (0, 0)


def test_an_alias_begins_at_0_and_keeps_its_own_count(publish: Publish) -> None:
    story = publish()
    viewed(story, 2)
    story = StoryPage.objects.get()
    alias = story.create_alias(update_slug="alias")
    assert stored(alias) == 0
    viewed(alias)
    story.save_revision().publish()  # which also writes the alias
    assert stored(alias) == 1
    assert stored(story) == 2


def test_a_deleted_page_takes_its_counts_along(
    publish: Publish, index: IndexPage, django_capture_on_commit_callbacks: Any
) -> None:
    pages = [publish(LongStoryPage), publish(EventPage, title="An event")]
    for page in pages:
        viewed(page)
    with django_capture_on_commit_callbacks(execute=True):
        Page.objects.get(pk=index.pk).delete()  # and with it what is below it
    flush()
    assert not SubjectCount.objects.exists()
    assert not any(reports.views(pages).values())
