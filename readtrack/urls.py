"""`path("readtrack/", include("readtrack.urls"))`: the HTTP endpoints of readtrack."""

from django.urls import path

from readtrack import parts
from readtrack.views import read_state_api

app_name = "readtrack"

urlpatterns = [
    path("unread/", read_state_api.unread, name="unread"),
    path("read/", read_state_api.read, name="read"),
    *(pattern for part in parts.installed() for pattern in part.urls()),
]
