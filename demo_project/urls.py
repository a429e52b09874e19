"""The site's URLs: the newsroom, signing in and out, the admin, and the address of the pages'
script.
"""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", include("demo_project.blog.urls")),
    path("forum/", include("demo_project.forum.urls")),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("live/", include("readtrack.urls")),
    # The admin's pages name no icon, so that browsers ask for this one.
    path("favicon.ico", RedirectView.as_view(url=static("blog/icon.svg"))),
]
