"""`path("readtrack/", include("readtrack.urls"))`: the HTTP endpoints of readtrack."""

from django.urls import path

from readtrack.views import honeypot, outbound, unread

app_name = "readtrack"

urlpatterns = [
    path("archive/", honeypot.honeypot, name="honeypot"),  # the path must not tell robots that it is a honeypot
    path("out/<str:signed>", outbound.follow, name="outbound"),
    path("unread/", unread.unread, name="unread"),
    path("read/", unread.read, name="read"),
]
