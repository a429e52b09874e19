"""The part for forums: read state by reader, in the form "positions", for threads by the million.

`positions.py` calls the scripts in `lua/`, which mark and publish. `paths.py` and `boards.py` tell
which boards a thread is in, and `forms.py` which models have threads and boards. `times.py` and
`read_times.py` copy the keys to SQL and back, `carrying.py` moves them to other names and
partitions. `reports.py` and `tags.py` tell what is new to a reader in a thread.
"""
