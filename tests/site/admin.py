"""The site's own admin."""

from django.contrib import admin

from readtrack.admin import TrackedAdmin
from tests.site.models import Page, Post


@admin.register(Post)
class PostAdmin(TrackedAdmin):
    list_display = ("title", "category")


class Titled:
    """A mixin of the site's own for admin classes."""

    list_display = ("slug",)


@admin.register(Page)
class PageAdmin(TrackedAdmin, Titled, admin.ModelAdmin):  # type: ignore[misc]
    """An admin class with the count column as a mixin."""
