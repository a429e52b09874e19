"""News: a page that is published makes the pages above it unread.

Wagtail's signals say when a page is published, because a draft is saved as well.
"""

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import ManyToManyField, Model
from wagtail.models import (
    PageLogEntry,
    PageViewRestriction,
    TranslatableMixin,
    get_page_models,
)
from wagtail.signals import page_published, page_unpublished, post_page_move

from readtrack import receivers
from readtrack.contrib.wagtail.models_of_site import base_model
from readtrack.models import Tracked
from readtrack.store import scripts
from readtrack.subjects import has_read_state, is_derived, is_news_by_models_setting, news_links
from readtrack.unread import publishing

#: What `is_news` gets as the changed field if a page, or one above it, was moved.
PARENT = "parent"
PAGES_AT_ONCE = 300  # of a section that is moved


def connect() -> None:
    """Connects the receivers, in place of those that publish a row when it is saved."""
    receivers.leave_publishing_to_app(get_page_models())
    page_published.connect(on_published, dispatch_uid="readtrack.on_published")
    page_unpublished.connect(on_unpublished, dispatch_uid="readtrack.on_unpublished")
    post_page_move.connect(on_moved, dispatch_uid="readtrack.on_moved")


def on_published(sender: Any, instance: Any, **kwargs: Any) -> None:
    """Receives page_published. The first publication of a page is news."""
    page = instance.specific
    is_first = _is_first_publication(page, kwargs.get("revision"))
    if _is_news(page, created=is_first, changed=frozenset()):
        publishing.publish_to([*_sections(page), *_linked_categories(page)], [page])


def _is_first_publication(page: Any, revision: Any) -> bool:
    """Returns True if the page was never published before, also if an editor has dated it."""
    if page.first_published_at == page.last_published_at:
        return True
    # An editor may have set the first date. The revision has the page as it was when it was saved.
    if revision is None or revision.content.get("last_published_at"):
        return False
    # An older draft may be published after a newer one. Wagtail logs a publication after the
    # signal.
    published_before = PageLogEntry.objects.filter(page=page.pk, action="wagtail.publish")
    return not published_before.exists()


def on_unpublished(sender: Any, instance: Any, **kwargs: Any) -> None:
    """Receives page_unpublished, also before a live page is deleted. Takes the page's news back."""
    page = instance.specific
    categories = [*_with_read_state(page.get_ancestors(inclusive=True)), *_all_linked(page)]
    publishing.unpublish_from(categories, [page])


def on_moved(
    sender: Any, instance: Any, *, parent_page_before: Any, parent_page_after: Any, **kwargs: Any
) -> None:
    """Receives post_page_move. The page and the live pages below it are news in the sections that
    they come to, and no longer in those that they leave.
    """
    if parent_page_before.pk == parent_page_after.pk:
        return
    # A move may change the paths of pages beside it, too.
    parent_before = base_model().objects.get(pk=parent_page_before.pk)
    sections_before = _with_read_state(parent_before.get_ancestors(inclusive=True))
    sections = [section for section in _sections(instance) if section.pk != instance.pk]
    left = [section for section in sections_before if section not in sections]
    entered = [section for section in sections if section not in sections_before]
    if left or entered:
        _move_news(instance, left=left, entered=entered)


def _move_news(moved_page: Any, *, left: list[Model], entered: list[Model]) -> None:
    """Takes the news of the page, and of the live pages below it, back in the sections that they
    leave, and publishes it in those that they enter.
    """
    # Those below, too, because each of them was published to all sections above it.
    pages = base_model().objects.descendant_of(moved_page, inclusive=True)
    pages = pages.live().filter(alias_of=None)
    pks = [*pages.order_by("path").values_list("pk", flat=True)]
    paths_of_private = _paths_of_private(moved_page)
    for portion in scripts.sliced(pks, PAGES_AT_ONCE):
        posts = [*pages.filter(pk__in=portion).specific()]
        publishing.unpublish_from(left, posts)
        news = [
            post
            for post in posts
            if not post.path.startswith(paths_of_private)
            and _is_news(post, created=False, changed={PARENT})
        ]
        publishing.publish_each_to(entered, news)


def _paths_of_private(page: Any) -> tuple[str, ...]:
    """Returns the paths of those pages, from the page downwards, that have a restriction."""
    restrictions = PageViewRestriction.objects.filter(page__path__startswith=page.path)
    return tuple(restrictions.values_list("page__path", flat=True))


def _is_news(page: Any, *, created: bool, changed: Collection[str]) -> bool:
    """Returns True if the page is news. `created` says that it is published for the first time."""
    # Wagtail sends the signal also when it schedules a page. An alias shows another page's text.
    if not page.live or page.alias_of_id is not None:
        return False
    if isinstance(page, Tracked):
        return page.is_news(created=created, changed=frozenset(changed))
    return (created or bool(changed)) and is_news_by_models_setting(page)


def _sections(page: Any) -> list[Model]:
    """Returns the page and the pages above it that the page makes unread.

    A page above a restriction is left out, because those who see it may not see the page.
    """
    depth = _depth_of_restriction(page)
    pages = page.get_ancestors(inclusive=True)
    return _with_read_state([above for above in pages if above.depth >= depth])


def _depth_of_restriction(page: Any) -> int:
    """Returns the depth of the nearest page, from the page upwards, that not everybody may see; 0
    for a public page.
    """
    restrictions = page.get_view_restrictions().select_related("page")
    return max((restriction.page.depth for restriction in restrictions), default=0)


def _with_read_state(pages: Iterable[Any]) -> list[Model]:
    """Returns the pages that have a dot, each as an object of its own model.

    A category is left out whose dot is made out of those of others, as that of a board of threads.
    """
    specific_pages = [page.specific_deferred for page in pages]
    return [
        page for page in specific_pages if has_read_state(type(page)) and not is_derived(type(page))
    ]


def _linked_categories(page: Any) -> list[Model]:
    """Returns the categories that the page's `news_for` leads to, and that it makes unread.

    They are none for a page that not everybody may see. A translation is left out of the categories
    of another locale. In a category without a locale, only the first of the translations is news.
    """
    categories = _all_linked(page)
    if not categories or _depth_of_restriction(page):
        return []
    is_first = not page.get_translations().filter(live=True, alias_of=None).exists()
    return [
        category
        for category in categories
        if _takes_translation(category, page, is_first_translation=is_first)
    ]


def _takes_translation(category: Model, page: Any, *, is_first_translation: bool) -> bool:
    """Returns True if the page is news in the category.

    It is in a category of the page's locale. In one without a locale, it is if the page is the
    first of its translations.
    """
    if isinstance(category, TranslatableMixin):
        return bool(category.locale_id == page.locale_id)
    return is_first_translation


def _all_linked(page: Any) -> list[Model]:
    """Returns the categories that the page's `news_for` leads to."""
    categories: list[Model] = []
    for field in news_links(type(page)):
        linked = getattr(page, field.name)
        if isinstance(field, ManyToManyField):
            categories += linked.all()
        elif linked is not None:
            categories.append(linked)
    return categories
