"""The part "recently viewed": what each reader opened lately, in Redis.

`options.py` reads the setting RECENT, `openings.py` writes and reads the lists, `reports.py` and
`tags.py` show them, and `questions.py` answers programs.
"""
