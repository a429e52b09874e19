"""The part of the page's script, which counts pages that the server does not see, and texts that
are read.

`shown.py` names what a page shows, `rendering.py` and `tags.py` put the script into the page,
`views.py` takes its reports, and `reporting.py` tells the middleware which views and reads are
left to them. `outbound.py` and `robots.py` are links whose address belongs to the part.
"""
