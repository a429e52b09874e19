"""The admin's actions on tracked models, and the notes on the charts."""

import html
import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.template import Context
from django.template.loader import get_template
from django.test import Client, RequestFactory
from pytest_django import Settings

from readtrack import reports, tracker
from readtrack.admin import TrackedAdmin, mark_unread, publish_again, reset_counts
from readtrack.flush import resets
from readtrack.flush.run import flush
from readtrack.subjects import subject_of
from tests.conftest import Start
from tests.site.models import Page, Post
from tests.support import factories
from tests.support.pseudo import unmarked

pytestmark = pytest.mark.django_db

POSTS = "/admin/site/post/"
ACTIONS = ("reset_counts", "publish_again")


def act(client: Client, action: str, posts: list[Any], **data: Any) -> Any:
    selected = [str(post.pk) for post in posts]
    return client.post(POSTS, {"action": action, "_selected_action": selected, **data}, follow=True)


def confirmed(client: Client, page: Any) -> Any:
    """Sends the form of the page as a browser does."""
    form = page.text[page.text.index('<form method="post">') :]
    fields: dict[str, list[str]] = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="(.*?)">', form):
        fields.setdefault(name, []).append(html.unescape(value))
    return client.post(POSTS, fields, follow=True)


def test_a_reset_is_done_once_it_is_confirmed(admin_client: Client) -> None:
    reset, kept = factories.post(title="<i>"), factories.post()
    for post in (reset, kept):
        tracker.record(factories.hit(subject_of(post)))
    flush()
    page = act(admin_client, "reset_counts", [reset], index="0")
    assert "Reset the counts of selected posts" in page.text
    assert "This cannot be undone." in page.text
    assert "<li>&lt;i&gt;</li>" in page.text
    assert reports.views([reset, kept]) == {reset: 1, kept: 1}
    page = confirmed(admin_client, page)
    assert "Done: Reset the counts of selected posts." in page.text
    reset, kept = (Post.objects.get(pk=post.pk) for post in (reset, kept))
    assert (reset.view_count, reset.visitor_count, kept.view_count) == (0, 0, 1)
    assert reports.views([reset, kept]) == {reset: 0, kept: 1}
    assert [(entry.object_id, str(entry)) for entry in LogEntry.objects.all()] == [
        (str(reset.pk), "Changed “<i>” — Reset the counts of selected posts")
    ]


def test_a_confirmation_names_the_first_of_many_rows(admin_client: Client) -> None:
    category, user = factories.category(), factories.user()
    posts = [factories.post(category=category) for _ in range(12)]
    tracker.mark_read(user, [category])
    page = act(admin_client, "publish_again", posts, index="0")
    assert page.text.count("<li>Post ") == 10
    assert "<li>…</li>" in page.text
    assert reports.unread(user, [category]) == set()
    confirmed(admin_client, page)
    assert LogEntry.objects.count() == 12


@pytest.mark.django_db(transaction=True)
def test_publishing_again_reaches_redis_on_commit(admin_client: Client) -> None:
    category, user = factories.category(), factories.user()
    post = factories.post(category=category)
    tracker.mark_read(user, [category])
    confirmed(admin_client, act(admin_client, "publish_again", [post]))
    assert reports.unread(user, [category]) == {category}


def test_many_rows_are_changed_and_logged_some_at_a_time(
    admin_client: Client, start_redis: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readtrack.admin.SLICE", 2)
    posts, sizes, reset = (
        [factories.post(view_count=5) for _ in range(5)],
        list[int](),
        resets.reset,
    )
    valkey = start_redis()

    def reset_or_stop(some: list[str]) -> None:
        sizes.append(len(some))
        if len(sizes) == 3:
            valkey.stop()
        reset(some)

    monkeypatch.setattr(resets, "reset", reset_or_stop)
    page = confirmed(admin_client, act(admin_client, "reset_counts", posts[:1], select_across="1"))
    assert "Please do it again." in page.text
    assert sizes == [2, 2, 1]
    done = set(Post.objects.filter(view_count=0).values_list("pk", flat=True))
    assert done == {post.pk for post in posts[:4]}
    assert {int(str(entry.object_id)) for entry in LogEntry.objects.all()} == done


def test_all_rows_of_a_list_are_meant_if_that_was_chosen(admin_client: Client) -> None:
    posts = [factories.post(view_count=5) for _ in range(3)]
    page = act(admin_client, "reset_counts", posts[:1], select_across="1")
    assert "these 3 objects" in page.text
    confirmed(admin_client, page)
    assert not Post.objects.filter(view_count__gt=0).exists()


def test_each_model_has_the_actions_that_apply(settings: Settings) -> None:
    settings.READTRACK = {"MODELS": {"site.Post": {"read_state": True}}}

    class Own(TrackedAdmin):
        actions = [reset_counts, "mark_unread"]

    class Without(TrackedAdmin):
        actions = None

    def actions(of: type[TrackedAdmin], model: type[Any]) -> list[Any]:
        return list(of(model, admin.site).actions or ())

    assert actions(TrackedAdmin, Post) == [reset_counts, mark_unread, publish_again]
    assert actions(TrackedAdmin, Page) == [reset_counts, publish_again]
    assert actions(Own, Page) == [reset_counts, "mark_unread", publish_again]
    assert actions(Without, Page) == []


def test_an_action_fits_any_admin_of_a_model_with_read_state(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.READTRACK = {"MODELS": {"site.Post": {"read_state": True}}}
    monkeypatch.setattr(admin.site.get_model_admin(Post), "actions", [mark_unread])
    post, user = factories.post(), factories.user()
    tracker.mark_read(user, [post])
    page = act(admin_client, "mark_unread", [post])
    assert reports.unread(user, [post]) == set()
    confirmed(admin_client, page)
    assert reports.unread(user, [post]) == {post}


@pytest.mark.parametrize("action", ACTIONS)
def test_only_those_who_may_change_the_rows_have_the_actions(action: str) -> None:
    user = factories.user(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_post"))
    post = factories.post(view_count=5)
    page = act(factories.browser(user), action, [post], confirmed="yes")
    assert f'value="{action}"' not in page.text
    assert Post.objects.get().view_count == 5


def test_without_redis_an_action_says_so(admin_client: Client, start_redis: Start) -> None:
    post = factories.post(view_count=5)
    valkey = start_redis()
    page = act(admin_client, "reset_counts", [post])
    valkey.stop()
    assert "Please do it again." in confirmed(admin_client, page).text
    assert Post.objects.get().view_count == 5
    assert LogEntry.objects.count() == 0


@pytest.mark.usefixtures("pseudo")
@pytest.mark.parametrize("action", ACTIONS)
def test_every_word_of_a_confirmation_is_marked_for_translation(
    action: str, admin_client: Client
) -> None:
    page = act(admin_client, action, [factories.post(title="1")])
    form = page.text.partition('<form method="post">')[2].partition("</form>")[0]
    assert unmarked(re.sub(r"<[^>]*>|posts", " ", form)) == []
    assert "⟦Reset the counts" in page.text or "⟦Publish" in page.text


@pytest.mark.needs_parts("numbers")
def test_editors_write_notes_on_the_charts(admin_client: Client) -> None:
    from readtrack.numbers.models import Note

    admin_client.post(
        "/admin/readtrack_numbers/note/add/", {"day": "2026-11-20", "text": "Newsletter sent"}
    )
    assert str(Note.objects.get()) == "Newsletter sent"
    assert "Newsletter sent" in admin_client.get("/admin/readtrack_numbers/note/").text
    assert (
        factories.browser(User.objects.create_user("a", is_staff=True))
        .get("/admin/readtrack_numbers/note/")
        .status_code
        == 403
    )


def test_counts_in_fieldsets_cannot_be_edited() -> None:
    class InFieldsets(TrackedAdmin):
        fieldsets = [(None, {"fields": ["title", "view_count"]})]

    assert "view_count" in InFieldsets(Post, admin.AdminSite()).readonly_fields


def test_a_model_without_the_columns_has_no_column_of_views(
    rf: RequestFactory, settings: Settings
) -> None:
    settings.READTRACK = {"MODELS": {"auth.User": {"counted": True}}}
    request = rf.get("/")
    request.user = AnonymousUser()
    model_admin: Any = TrackedAdmin(User, admin.AdminSite())
    assert model_admin.get_list_display(request) == ["__str__"]
    assert [action.__name__ for action in model_admin.actions] == ["reset_counts"]


def test_the_form_with_numbers_has_a_base_where_no_view_renders_it() -> None:
    """Tools that read all templates, such as the offline compression of static files, need it."""
    template = get_template("admin/readtrack/numbers_form.html").template  # type: ignore[attr-defined]
    context = Context()
    with context.bind_template(template):
        assert template.nodelist[0].get_parent(context).name == "admin/change_form.html"
