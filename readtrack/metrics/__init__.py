"""Metrics of the running system for Prometheus, and the memory of Redis that it takes.

`scrapers.py` says who may read the metrics, `views.py` answers them, and `exposition.py` asks Redis
and SQL for the numbers. `memory.py` weighs keys in Redis, and `budget.py` estimates their memory
for a site of another size.
"""
