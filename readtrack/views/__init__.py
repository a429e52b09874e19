"""The HTTP endpoints of readtrack, one module for each: a site's own views may call `unread` and
`read`.
"""

from readtrack.views.read_state_api import read as read
from readtrack.views.read_state_api import unread as unread
