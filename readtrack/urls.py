"""`path("readtrack/", include("readtrack.urls"))`: the HTTP endpoints of readtrack."""

from readtrack import parts

app_name = "readtrack"

urlpatterns = [pattern for part in parts.installed() for pattern in part.urls()]
