"""The part "networks": what files that the site names tell of an address.

`options.py` reads the setting NETWORKS, `lookup.py` reads the files and looks addresses up.
"""
