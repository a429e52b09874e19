"""The newsroom in the admin."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from demo_project.blog.models import Category, Post
from readtrack.admin import TrackedAdmin, mark_unread


@admin.register(Category)
class CategoryAdmin(admin.ModelAdmin):
    """Sections are few; the list is enough."""

    list_display = ("name", "description")
    actions = (mark_unread,)


@admin.register(Post)
class PostAdmin(TrackedAdmin):
    """Its base adds the sortable column of counts."""

    list_display = ("title", "category", "author", "published_at")
    list_filter = ("category",)
    list_select_related = ("category", "author")
    date_hierarchy = "published_at"
    search_fields = ("title",)
    list_per_page = 30

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"author": request.user.pk, **super().get_changeform_initial_data(request)}
