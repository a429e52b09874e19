"""The part "tenants": what a site needs that has a database schema for each tenant.

The core names the keys of each tenant by the function in PREFIX. `checks.py` finds tenants that
would share their counts, and `forgetting.py` removes the keys of a tenant that is gone.
"""
