"""The doctor examines the running system, says what to do, and changes nothing.

`measurements.py` asks Redis and SQL and returns values with units. `findings.py` judges the values,
and has the words for people. `report.py` lists the examinations and goes through them.
"""
