"""`path("readtrack/", include("readtrack.urls"))`: the HTTP endpoints of readtrack."""

from django.urls import path

from readtrack import views
from readtrack.conf import conf

app_name = "readtrack"

urlpatterns = [
    # The path must not tell robots that it is a honeypot.
    path("archive/", views.honeypot),
    path("archive/<str:name>/", views.honeypot, name="honeypot"),
    path("out/<str:signed>", views.follow, name="outbound"),
    path(conf.SCRIPT, views.page, name="page"),
    path("unread/", views.unread, name="unread"),
    path("read/", views.read, name="read"),
]
