"""The notes on the charts in the admin."""

from django.contrib import admin

from readtrack.numbers.models import Note


@admin.register(Note)
class NoteAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """The notes on the charts."""

    list_display = ("day", "text")
    date_hierarchy = "day"
