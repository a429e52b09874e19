"""The tokens of the JSON API in the admin."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from readtrack.api.models import ApiToken


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The tokens of the JSON API.

    A token has the permissions of its user. So everybody sees and makes tokens of their own only,
    except superusers. A token is never changed, and is revoked instead of deleted.
    """

    list_display = ("name", "prefix", "of_user", "created", "last_used", "expires", "revoked")
    raw_id_fields = ("user",)
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Users may be in another database.
        rows = super().get_queryset(request).prefetch_related("user")
        return rows if _is_superuser(request) else rows.filter(user_id=request.user.pk)

    # Not the field, for which Django would join the table of users.
    @admin.display(description=pgettext_lazy("API token", "user"))
    def of_user(self, token: ApiToken) -> Any:
        """Returns the user of the token."""
        return token.user

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_delete_permission = has_change_permission

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None:
            return self.list_display
        return ("user", "name", "expires") if _is_superuser(request) else ("name", "expires")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        """Returns the form of a new token. It has one button, because a page with the text
        follows.
        """
        hidden = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, {**(extra_context or {}), **hidden})

    def get_changeform_initial_data(self, request: HttpRequest) -> Any:
        return {"user": request.user.pk, **super().get_changeform_initial_data(request)}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """Saves a new token, and keeps its text for the answer to this request."""
        if not _is_superuser(request):
            obj.user_id = request.user.pk
        obj.shown_once = obj.set_text()
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> Any:
        """Returns a page with the text of the new token.

        It is no message, because messages are kept in a cookie or in the session until they are
        shown.
        """
        list_url = reverse(
            "admin:readtrack_api_apitoken_changelist", current_app=self.admin_site.name
        )
        context = {
            **self.admin_site.each_context(request),
            "title": obj.name,
            "text": obj.shown_once,
            "list_url": list_url,
        }
        return TemplateResponse(request, "admin/readtrack_api/token.html", context)

    @admin.action(permissions=["add"], description=_("Revoke selected %(verbose_name_plural)s"))
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Revokes the tokens that are not revoked yet. They are refused from the next request
        on.
        """
        rows = [*queryset.filter(revoked=None)]
        queryset.filter(revoked=None).update(revoked=timezone.now())
        user: Any = request.user
        LogEntry.objects.log_actions(user.pk, rows, CHANGE, "revoked")
        self.message_user(request, gettext("Revoked."), messages.SUCCESS)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
