"""The part "audience": who has read what.

`readers.py` says which users have read an object, `page.py` shows it in the admin, and
`while_away.py` says what is new to a user since the last visit. `reports.py` is the public list.
"""
