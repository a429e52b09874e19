"""Alerts: what is unusual is told once, by a signal, by mail and to a webhook.

`conditions.py` judges numbers, `watching.py` asks SQL and Redis for them, `records.py` makes sure
that each alert is told once, `channels.py` tells it.
"""
