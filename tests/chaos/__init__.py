"""The chaos run, `python -m tests.chaos`: processes are killed, servers crash, and then the counts
are compared.
"""
