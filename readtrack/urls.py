"""`path("readtrack/", include("readtrack.urls"))`: the HTTP endpoints of readtrack."""

from django.urls import path

from readtrack import parts
from readtrack.conf import conf
from readtrack.views import (
    honeypot,
    outbound,
    read_state_api,
    script,
)

app_name = "readtrack"

urlpatterns = [
    # The path must not tell robots that it is a honeypot.
    path("archive/", honeypot.honeypot),
    path("archive/<str:name>/", honeypot.honeypot, name="honeypot"),
    path("out/<str:signed>", outbound.follow, name="outbound"),
    path(conf.SCRIPT, script.page, name="page"),
    path("unread/", read_state_api.unread, name="unread"),
    path("read/", read_state_api.read, name="read"),
    *(pattern for part in parts.installed() for pattern in part.urls()),
]
