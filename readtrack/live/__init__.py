"""The part of dots that change in an open page.

`script.py` and `live.js` are what a page's script does more, `dots.py` names the dots of a page,
`views.py` answers polls, and `server.py` sends events of what `subscription.py` hears.
"""
