"""The numbers of a scope: what the dashboard, the digest, the API and alerts have in common.

A scope is a period with filters. `loading` asks SQL and Redis for its numbers, `data` is what they
answered, and `tables` and `totals` are made of it.
"""
