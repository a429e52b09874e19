"""`path("readtrack/", include("readtrack.urls"))`: what readtrack answers itself."""

from django.urls import path

from readtrack.views import honeypot, outbound, unread

app_name = "readtrack"

urlpatterns = [
    path("archive/", honeypot.honeypot, name="honeypot"),  # a name that robots do not know for what it is
    path("out/<str:signed>", outbound.follow, name="outbound"),
    path("unread/", unread.unread, name="unread"),
    path("read/", unread.read, name="read"),
]
