"""`path("readtrack/", include("readtrack.urls"))`"""

from django.urls import path

from readtrack import honeypot, views

app_name = "readtrack"

urlpatterns = [
    path("archive/", honeypot.honeypot, name="honeypot"),  # a name that robots do not know for what it is
    path("unread/", views.unread, name="unread"),
    path("read/", views.read, name="read"),
]
