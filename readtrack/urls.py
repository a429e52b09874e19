"""`path("readtrack/", include("readtrack.urls"))`: what readtrack answers itself."""

from django.urls import path

from readtrack import honeypot, outbound, views

app_name = "readtrack"

urlpatterns = [
    path("archive/", honeypot.honeypot, name="honeypot"),  # a name that robots do not know for what it is
    path("out/<str:signed>", outbound.follow, name="outbound"),
    path("unread/", views.unread, name="unread"),
    path("read/", views.read, name="read"),
]
