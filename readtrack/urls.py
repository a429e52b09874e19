"""`path("readtrack/", include("readtrack.urls"))`: the HTTP endpoints of readtrack."""

from django.urls import path

from readtrack.conf import conf
from readtrack.views import honeypot, outbound, page, unread

app_name = "readtrack"

urlpatterns = [
    path("archive/", honeypot.honeypot, name="honeypot"),  # the path must not tell robots that it is a honeypot
    path("out/<str:signed>", outbound.follow, name="outbound"),
    path(conf.SCRIPT, page.page, name="page"),
    path("unread/", unread.unread, name="unread"),
    path("read/", unread.read, name="read"),
]
