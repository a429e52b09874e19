"""The site's own admin."""

from django.contrib import admin

from readtrack.admin import TrackedAdmin
from tests.site.models import Page, Post


@admin.register(Post)
class PostAdmin(TrackedAdmin):
    list_display = ("title", "category")


class Titled:
    """Something else that a site's admin classes may extend."""

    list_display = ("slug",)


@admin.register(Page)
class PageAdmin(TrackedAdmin, Titled, admin.ModelAdmin):  # type: ignore[misc]
    """Mixed in, with everything else left as it is."""
