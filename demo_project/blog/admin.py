"""The newsroom in the admin."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from demo_project.blog.models import Category, Post
from readtrack.admin import TrackedAdmin


@admin.register(Category)
class CategoryAdmin(TrackedAdmin):
    """Its base adds the action that makes sections unread, and the link to who has read one."""

    list_display = ("name", "description")


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
