"""The reports as questions that programs ask: over HTTP, and by the Model Context Protocol.

The answers are the tables of the dashboard, for the same users.
"""
