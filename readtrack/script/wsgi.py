"""Reports answered before Django's stack: `application = with_reports(get_wsgi_application())` in
wsgi.py.

That takes half of the processor time. Reports of users who are signed in go through
Django as before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from readtrack.script.reports_by_wsgi import Application


def with_reports(application: Application, *, cookies: Collection[str] = ()) -> Application:
    """Returns a WSGI application that answers the reports of page scripts, and leaves all else to
    `application`.

    `cookies` are the names of further cookies by which the site knows its users. The one of the
    session is known.
    """
    # Not above, because wsgi.py imports this module before Django has loaded the apps.
    from readtrack.script.reports_by_wsgi import Reports

    return Reports(application, cookies=cookies)
