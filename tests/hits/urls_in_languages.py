"""URLs of a site in several languages, whose admin has an address of its own in each of them."""

from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.urls import path

from tests.site import views

urlpatterns = i18n_patterns(
    path("admin/", admin.site.urls),
    path("verwaltung-ü/", admin.site.urls),
    path("posts/<int:pk>/", views.PostPage.as_view()),
    prefix_default_language=False,
)
