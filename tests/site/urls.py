"""Pages of the test site."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from tests.site import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("login/", LoginView.as_view()),
    path("logout/", LogoutView.as_view(next_page="/list/")),
    path("readtrack/", include("readtrack.urls")),
    path("posts/<int:pk>/", views.PostPage.as_view()),
    path("categories/<int:pk>/", views.CategoryPage.as_view()),
    path("manuals/<int:pk>/", views.ManualPage.as_view()),
    path("posts/<int:pk>/function/", views.post_page),
    path("posts/<int:pk>/async/", views.apost_page),
    path("posts/<int:pk>/count/", views.count_page),
    path("posts/<int:pk>/count/async/", views.acount_page),
    path("posts/<int:pk>/delete/", views.DeletePost.as_view()),
    path("posts/<int:pk>/status/<int:status>/", views.status_page),
    path("categories/<int:pk>/function/", views.category_page),
    path("posts/<int:pk>/buy/", views.buy),
    path("list/", views.listing),
    path("bare/", views.bare_listing),
    path("stream/", views.stream),
    path("json/", views.json_page),
]
