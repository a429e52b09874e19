"""`path("readtrack/", include("readtrack.urls"))`: the HTTP endpoints of readtrack."""

from django.urls import path

from readtrack import views
from readtrack.conf import conf

app_name = "readtrack"

urlpatterns = [
    path(
        "archive/", views.honeypot, name="honeypot"
    ),  # the path must not tell robots that it is a honeypot
    path("out/<str:signed>", views.follow, name="outbound"),
    path(conf.SCRIPT, views.page, name="page"),
    path("unread/", views.unread, name="unread"),
    path("read/", views.read, name="read"),
]
